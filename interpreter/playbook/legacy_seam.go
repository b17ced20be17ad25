package playbook

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// The functions exported by this file, with OlderNames, PaginationOf and StyleList, are all that
// interpreter/migrate knows about older forms. It finds them in a file and determines the edits of the text; their
// meaning is defined in the legacy files.

// OlderRetry converts a retry in an older form to the list of policies; tool is that of its step or sink, "" if it
// is not literal. It returns nil if that is not possible; Decode reports why.
func OlderRetry(file *source.File, value *yaml.Node, tool string) *yaml.Node {
	return olderDecoder(file).legacyRetry(value, tool)
}

// OlderPages is OlderRetry for the value of a loop.pagination.
func OlderPages(file *source.File, value *yaml.Node, tool string) *yaml.Node {
	d := olderDecoder(file)
	if list := d.pagesList(value, tool); !d.Found.HasErrors() {
		return list
	}
	return nil
}

// OlderRequest converts {kind: Webhook, params: {url, verb}}, of a notice or of on_start, to its newer form and
// returns the kind; nil if n is something else. The nodes of keys and values are reused.
func OlderRequest(n *yaml.Node) (newer, kind *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return nil, nil
	}
	keys := yamltree.KeyValues(n)
	kind, params := keys["kind"], keys["params"]
	if kind == nil || !strings.EqualFold(kind.Value, "webhook") || params == nil || params.Kind != yaml.MappingNode {
		return nil, nil
	}
	copied := *n
	copied.Content = nil
	for key, value := range yamltree.Pairs(n) {
		if name := key.Value; name != "kind" && name != "params" {
			copied.Content = append(copied.Content, key, value)
		}
	}
	for key, value := range yamltree.Pairs(params) {
		name, value := *key, *value
		if name.Value == "verb" {
			name.Value, value.Value = "method", strings.ToUpper(value.Value)
		}
		copied.Content = append(copied.Content, &name, &value)
	}
	return &copied, kind
}

func olderDecoder(file *source.File) *decoder {
	return &decoder{Problems: Problems{File: file}, broken: map[*yaml.Node]bool{}, older: true}
}

// CurrentSpelling returns the current spelling, possibly the same, of a word in the named section; "" if no version of the
// section has it.
func CurrentSpelling(of, word string) string {
	i := slices.IndexFunc(sections, func(s *section) bool { return s.name == of })
	if i < 0 {
		return ""
	}
	s := sections[i]
	if _, current := s.findKey(word, false); current {
		return word
	}
	if older, ok := s.findKey(word, true); ok {
		return older.name
	}
	return s.fields[word]
}

// OlderLabel reports whether a key of metadata was a label in OlderVersion.
func OlderLabel(key string, value *yaml.Node) bool {
	known, found := metadataSection.findKey(key, true)
	return (!found || known.newer) && isLabel(metadataSection, key, value)
}
