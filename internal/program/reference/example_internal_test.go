package reference

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"reprise/activities"
	"reprise/interpreter/playbook"
)

// TestExamplesAreNeeded: a word whose kind gives the value of its example has no row, and each row is of a word that there
// is.
func TestExamplesAreNeeded(t *testing.T) {
	t.Parallel()
	rows := map[string]samples{"examples.txt": keyExamples, "tests.txt": testExamples, "fields.txt": fieldExamples}
	known := map[string]bool{}
	unneeded := func(file string, all samples, section, word, plain string) {
		known[file+section+"/"+word], known[file+every+"/"+word] = true, true
		if row, found := all[section][word]; found && row.around == all[section][""].around {
			assert.NotEqual(t, word+": "+plain, row.snippet, "%s: remove \"-- %s\" of \"# %s\": it says what the kind of the word does", file, word, section)
		}
	}
	for _, section := range playbook.Sections() {
		for _, key := range section.Keys {
			unneeded("examples.txt", keyExamples, section.Name, key.Name, plainValueOf(key))
		}
	}
	for _, section := range testSections() {
		for _, key := range section.Keys {
			unneeded("tests.txt", testExamples, strings.TrimPrefix(section.Name, "test "), key.Name, plainValueOf(key))
		}
	}
	tools := activities.DefaultCatalogue()
	for _, name := range tools.Names() {
		spec, _ := tools.Spec(name)
		for _, field := range spec.DescribedFields() {
			unneeded("fields.txt", fieldExamples, name, field.Name, plainValueOfField(field))
		}
	}
	for file, all := range rows {
		for section, words := range all {
			for word := range words {
				assert.True(t, word == "" || known[file+section+"/"+word],
					"%s: \"-- %s\" of \"# %s\" is of no word that is documented: add the word to its table (CONTRIBUTING.md), or remove the row", file, word, section)
			}
		}
	}
}
