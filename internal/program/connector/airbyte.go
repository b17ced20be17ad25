package connector

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// StreamNames returns the names of a manifest's streams.
func StreamNames(data []byte) ([]string, error) {
	manifest, err := readManifest(data)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, stream := range manifest.componentList("streams") {
		names = append(names, streamName(stream))
	}
	return names, nil
}

// ConvertManifest converts a manifest to a playbook. The error says what cannot be read, or which requested stream does not
// exist.
func ConvertManifest(data []byte, options Options) (*Result, error) {
	manifest, err := readManifest(data)
	if err != nil {
		return nil, err
	}
	c, err := newConverter(options, "stream", "of a low-code connector of Airbyte")
	if err != nil {
		return nil, err
	}
	c.manifest = manifest
	c.spec = c.readSpec()
	for _, found := range mentionedKeys.FindAllStringSubmatch(string(data), -1) {
		c.names[cmp.Or(found[1], found[2])] = true
	}
	streams := manifest.componentList("streams")
	for _, name := range options.Streams {
		if !slices.ContainsFunc(streams, func(stream component) bool { return streamName(stream) == name }) {
			return nil, fmt.Errorf("the manifest has no stream %q; it has %s", name, strings.Join(streamNames(streams), ", "))
		}
	}
	result := &Result{}
	for _, stream := range streams {
		if name := streamName(stream); len(options.Streams) == 0 || slices.Contains(options.Streams, name) {
			c.newStep(stream, false).written = true
			result.Streams = append(result.Streams, name)
		}
	}
	if err := c.tooManySteps(); err != nil {
		return nil, err
	}
	c.writeResult(result)
	return result, nil
}

// mentionedKeys finds the configuration keys that a manifest reads: steps and elements must not use their names.
var mentionedKeys = regexp.MustCompile(`config(?:\.get\(|\[)\s*['"]([A-Za-z0-9_-]+)['"]|config\.([A-Za-z0-9_]+)`)

func streamName(stream component) string {
	return cmp.Or(stream.text("name"), "stream")
}

func streamNames(streams []component) (names []string) {
	for _, stream := range streams {
		names = append(names, streamName(stream))
	}
	return names
}
