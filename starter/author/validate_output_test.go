package author

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// TestSARIF: what is written of all mistakes is SARIF, with a rule for each, and its fixes name what is in
// the file.
func TestSARIF(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/sarif.schema.json")
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource("sarif.json", document))
	schema, err := compiler.Compile("sarif.json")
	require.NoError(t, err)

	files, err := filepath.Glob("../../interpreter/playbook/testdata/*/*.yaml")
	require.NoError(t, err)
	var all source.Diagnostics
	read := map[string]*source.File{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		read[name] = source.NewFile(name, data)
		_, found := check.Validate(read[name], activities.DefaultCatalogue(), check.Options{})
		all = append(all, found...)
	}
	var out bytes.Buffer
	require.NoError(t, writeSARIF(&out, all, read))
	written, err := jsonschema.UnmarshalJSON(bytes.NewReader(out.Bytes()))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(written))

	run := written.(map[string]any)["runs"].([]any)[0].(map[string]any)
	rules := run["tool"].(map[string]any)["driver"].(map[string]any)["rules"].([]any)
	results := run["results"].([]any)
	require.Len(t, results, len(all))
	fixes := 0
	for i, one := range results {
		result := one.(map[string]any)
		index := result["ruleIndex"].(interface{ Int64() (int64, error) })
		n, err := index.Int64()
		require.NoError(t, err)
		require.Equal(t, all[i].Code, rules[n].(map[string]any)["id"])
		if result["fixes"] != nil {
			fixes++
		}
	}
	require.Greater(t, fixes, 30)
	t.Logf("%d of %d problems have a sure fix", fixes, len(all))
}

// TestGitHub: a message stays within its line, and cannot end a property.
func TestGitHub(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, writeGitHub(&out, source.Diagnostics{
		{File: "a,b:c.yaml", Pos: source.Position{Line: 2, Column: 3}, Code: "x", Message: "100%\n::error::y", Note: "note"},
		{File: "b.yaml", Code: "y", Message: "z", Severity: source.Warning},
	}))
	require.Equal(t, "::error file=a%2Cb%3Ac.yaml,line=2,col=3,title=x::100%25%0A::error::y%0Anote\n::warning file=b.yaml,line=1,col=1,title=y::z\n", out.String())
}
