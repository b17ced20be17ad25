package schema_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"reprise/activities"
	"reprise/internal/program/schema"
	"reprise/internal/test/docs"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

const root = "../../.."

func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	text, err := schema.Generate(activities.DefaultCatalogue())
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("playbook.json", document))
	made, err := compiler.Compile("playbook.json")
	require.NoError(t, err)
	return made
}

// TestFile: the file of the repository is what the tables give.
func TestFile(t *testing.T) {
	t.Parallel()
	want, err := schema.Generate(activities.DefaultCatalogue())
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(root, schema.File))
	require.NoError(t, err)
	require.True(t, string(want) == string(got), "%s is out of date: run make reference", schema.File)
}

// plain is a YAML document as JSON has it; false for one that JSON cannot have.
func plain(text string) (any, bool) {
	var value any
	if yaml.Unmarshal([]byte(text), &value) != nil {
		return nil, false
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, false
	}
	decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(string(encoded)))
	return decoded, err == nil
}

// books are the playbooks of the examples, the documents and the tests of mistakes.
func books(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"playbooks/*.yaml", "interpreter/playbook/testdata/*/*.yaml", "internal/test/e2e/testdata/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, name := range files {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			if !strings.HasSuffix(name, playbook.TestSuffix) {
				all[name] = string(text)
			}
		}
	}
	pages, err := docs.WrittenExamples(root)
	require.NoError(t, err)
	for page, blocks := range pages {
		for i, example := range blocks {
			if example.Words != nil && example.Words[0] == "yaml" && example.Whole() {
				all[page+string(rune('a'+i%26))+example.Text[:10]] = example.Text
			}
		}
	}
	return all
}

// TestSchemaAgrees: it accepts what validate finds no error in, and refuses at least 60 % of the
// playbooks with errors; the rest have names and routes that lead nowhere, which a schema cannot see.
func TestSchemaAgrees(t *testing.T) {
	t.Parallel()
	made := compiled(t)
	valid, invalid, refused := 0, 0, 0
	for name, text := range books(t) {
		_, found := check.Validate(source.NewFile(name, []byte(text)), activities.DefaultCatalogue(), check.Options{})
		value, is := plain(text)
		switch {
		case !is:
		case !found.HasErrors():
			valid++
			assert.NoError(t, made.Validate(value), name)
		default:
			invalid++
			if made.Validate(value) != nil {
				refused++
			}
		}
	}
	t.Logf("%d valid; refused %d of %d with errors", valid, refused, invalid)
	require.Greater(t, valid, 60)
	require.Greater(t, invalid, 100)
	require.GreaterOrEqual(t, float64(refused)/float64(invalid), 0.6)
}

// FuzzSchema: what the decoder accepts, the schema accepts.
func FuzzSchema(f *testing.F) {
	for _, text := range books(f) {
		f.Add(text)
	}
	made := compiled(f)
	f.Fuzz(func(t *testing.T, text string) {
		_, found := check.Validate(source.NewFile("fuzz.yaml", []byte(text)), activities.DefaultCatalogue(), check.Options{})
		if value, is := plain(text); is && !found.HasErrors() {
			require.NoError(t, made.Validate(value))
		}
	})
}
