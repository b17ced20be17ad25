package migrate

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/playbook"
	"reprise/interpreter/yamltree"
)

// edit replaces a part of the text.
type edit struct {
	start, end int
	text       string
}

// applyAll applies edits, which must not overlap.
func applyAll(text string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var b strings.Builder
	at := 0
	for _, edit := range edits {
		if edit.start < at {
			return "" // the result is then refused
		}
		b.WriteString(text[at:edit.start] + edit.text)
		at = edit.end
	}
	return b.String() + text[at:]
}

// versionOf returns the apiVersion of a file, "" if it has none.
func versionOf(top *yaml.Node) string {
	if version := yamltree.KeyValues(top)["apiVersion"]; version != nil {
		return version.Value
	}
	return ""
}

// migrateWords rewrites the spellings of noetl.io/v1 and then apiVersion itself, unless metadata has keys that only
// the older version allows.
func (m *migrator) migrateWords() {
	top := m.root.Content[0]
	if versionOf(top) != playbook.OlderVersion {
		return
	}
	newer := false // whether the version becomes the newer one
	if !m.rewriteText(func(e extent, root *yaml.Node) (edits []edit, ok bool) {
		for _, word := range sitesOf(root).words {
			if start, end := e.startOffset(word.key), e.endOffset(word.key); start >= 0 && end > start {
				edits = append(edits, edit{start, end, word.newer})
				word.key.Value = word.newer
			}
		}
		version, ok := m.changeVersion(e, root.Content[0])
		if newer = ok; ok {
			edits = append(edits, version)
		}
		return edits, true
	}) {
		m.addProblem(yamltree.PositionOf(top), playbook.CodeNotMigrated, "the spellings of "+playbook.OlderVersion+" cannot be rewritten here; write those of "+playbook.Version+" by hand")
		return
	}
	for _, word := range sitesOf(m.root).words {
		m.addChange(yamltree.PositionOf(word.key), word.key.Value+" becomes "+word.newer)
	}
	if newer {
		m.addChange(yamltree.PositionOf(yamltree.KeyValues(top)["apiVersion"]), "apiVersion becomes "+playbook.Version)
	}
}

// changeVersion returns the edit of apiVersion; false if the newer version would refuse the file.
func (m *migrator) changeVersion(e extent, top *yaml.Node) (edit, bool) {
	extra := false
	if metadata := yamltree.KeyValues(top)["metadata"]; metadata != nil {
		for key := range yamltree.Pairs(metadata) {
			if playbook.CurrentSpelling("metadata", key.Value) == "" {
				m.addProblem(m.metadataPlace(key.Value), playbook.CodeNotMigrated,
					"metadata."+key.Value+" cannot be turned into a label automatically, and "+playbook.Version+" has no such key; write it as a label or remove it, so that apiVersion can become "+playbook.Version)
				extra = true
			}
		}
	}
	value := yamltree.KeyValues(top)["apiVersion"]
	start, end := e.startOffset(value), e.endOffset(value)
	if extra || start < 0 || end < 0 {
		return edit{}, false
	}
	text := strings.Replace(e.text[start:end], playbook.OlderVersion, playbook.Version, 1)
	value.Value = playbook.Version
	return edit{start, end, text}, true
}
