package migrate

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// migrateLabels moves additional keys that noetl.io/v1 has in metadata, such as path, to metadata.labels, where the
// newer version has them.
func (m *migrator) migrateLabels() {
	if versionOf(m.root.Content[0]) != playbook.OlderVersion {
		return
	}
	var moving []string
	if !m.rewriteText(func(e extent, root *yaml.Node) ([]edit, bool) {
		metadata := yamltree.KeyValues(root.Content[0])["metadata"]
		if moving = olderMetadata(metadata); len(moving) == 0 {
			return nil, false
		}
		edits, ok := e.labelEdits(metadata, moving)
		if ok {
			moveToLabels(metadata, moving)
		}
		return edits, ok
	}) {
		return
	}
	for _, key := range moving {
		m.addChange(m.metadataPlace(key), "metadata."+key+" becomes a label")
	}
}

// olderMetadata returns the keys of metadata that become labels, in file order.
func olderMetadata(metadata *yaml.Node) []string {
	if metadata == nil || metadata.Kind != yaml.MappingNode {
		return nil
	}
	taken := map[string]*yaml.Node{}
	if labels := yamltree.KeyValues(metadata)["labels"]; labels != nil {
		if labels.Kind != yaml.MappingNode {
			return nil
		}
		taken = yamltree.KeyValues(labels)
	}
	var keys []string
	for key, value := range yamltree.Pairs(metadata) {
		if taken[key.Value] == nil && playbook.OlderLabel(key.Value, value) {
			keys = append(keys, key.Value)
		}
	}
	return keys
}

// moveToLabels moves keys of metadata to its labels.
func moveToLabels(metadata *yaml.Node, moving []string) {
	labels := yamltree.KeyValues(metadata)["labels"]
	for _, key := range moving {
		at := yamltree.IndexOf(metadata, key)
		pair := slices.Clone(metadata.Content[at : at+2])
		pair[1].Tag = "!!str"
		if labels == nil {
			labels = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			metadata.Content = slices.Replace(metadata.Content, at, at+2,
				&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "labels"}, labels)
		} else {
			metadata.Content = slices.Delete(metadata.Content, at, at+2)
		}
		labels.Content = append(labels.Content, pair...)
	}
}

// labelEdits returns the edits that move keys of metadata to its labels.
func (e extent) labelEdits(metadata *yaml.Node, moving []string) ([]edit, bool) {
	labels := yamltree.KeyValues(metadata)["labels"]
	switch {
	case inBrackets(metadata):
		return e.labelsInBrackets(metadata, moving)
	case labels != nil && (inBrackets(labels) || len(labels.Content) == 0):
		return nil, false
	}
	breaks := lineBreak([]byte(e.text))
	margin := metadata.Content[0].Column + 1
	if labels != nil {
		margin = labels.Content[0].Column - 1
	}
	var (
		edits []edit
		lines []string
	)
	for _, name := range moving {
		at := yamltree.IndexOf(metadata, name)
		first, last, ok := e.wholeLines(metadata.Content[at], metadata.Content[at+1])
		if !ok {
			return nil, false
		}
		moved, ok := e.labelLines(metadata.Content[at], metadata.Content[at+1], first, last)
		if !ok {
			return nil, false
		}
		lines = append(lines, shiftLines(moved, margin-(metadata.Content[at].Column-1), "\n"))
		edits = append(edits, e.removeLines(first, last))
	}
	block := strings.ReplaceAll(strings.Join(lines, "\n"), "\n", breaks)
	if labels != nil {
		end := e.endOffset(labels)
		if end < 0 {
			return nil, false
		}
		end = e.lineEnd(e.lineAt(end))
		return append([]edit{{end, end, breaks + block}}, edits...), true
	}
	block = strings.Repeat(" ", metadata.Content[0].Column-1) + "labels:" + breaks + block
	edits[0].text = block + breaks
	if strings.HasPrefix(e.text[edits[0].start:], breaks) { // for the last line, the break before it is removed
		edits[0].text = breaks + block
	}
	return edits, true
}

// labelLines returns the lines of a key whose value becomes text.
func (e extent) labelLines(key, value *yaml.Node, first, last int) ([]string, bool) {
	var lines []string
	for n := first; n <= last; n++ {
		lines = append(lines, e.file.Line(n))
	}
	if tag := value.ShortTag(); tag == "!!str" || tag == "!!timestamp" {
		return lines, true
	}
	start, end := e.startOffset(value), e.endOffset(value)
	if key.Line != value.Line || start < 0 || end < 0 {
		return nil, false
	}
	line := e.lineStart(value.Line)
	lines[value.Line-first] = e.text[line:start] + `"` + e.text[start:end] + `"` + e.text[end:e.lineEnd(value.Line)]
	return lines, true
}

// labelsInBrackets rewrites metadata that is in brackets.
func (e extent) labelsInBrackets(metadata *yaml.Node, moving []string) ([]edit, bool) {
	start, end := e.startOffset(metadata), e.endOffset(metadata)
	if start < 0 || end < 0 {
		return nil, false
	}
	copied := yamltree.WithoutAliases(metadata, false)
	moveToLabels(copied, moving)
	yamltree.KeyValues(copied)["labels"].Style = yaml.FlowStyle
	return []edit{{start, end, strings.TrimSpace(yamltree.EncodeNode(copied))}}, true
}

// wholeLines returns the first and last line of a key that does not share lines with others, including comments
// above it.
func (e extent) wholeLines(key, value *yaml.Node) (first, last int, ok bool) {
	end := e.endOffset(value)
	if end < 0 || strings.TrimSpace(e.text[e.lineStart(key.Line):e.startOffset(key)]) != "" {
		return 0, 0, false
	}
	first = key.Line
	for first > 1 && strings.HasPrefix(strings.TrimSpace(e.file.Line(first-1)), "#") {
		first--
	}
	return first, e.lineAt(end), true
}

// removeLines returns the edit that removes lines.
func (e extent) removeLines(first, last int) edit {
	if last == e.file.Lines() { // nothing follows: the break before goes
		return edit{e.lineEnd(first - 1), e.lineEnd(last), ""}
	}
	return edit{e.lineStart(first), e.lineStart(last + 1), ""}
}

// metadataPlace returns the position of a key of metadata in the original.
func (m *migrator) metadataPlace(name string) source.Position {
	metadata := yamltree.KeyValues(m.root.Content[0])["metadata"]
	if at := yamltree.IndexOf(metadata, name); at >= 0 {
		return yamltree.PositionOf(metadata.Content[at])
	}
	return yamltree.PositionOf(metadata)
}
