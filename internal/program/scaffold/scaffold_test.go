package scaffold_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/program/playtest"
	"reprise/internal/program/scaffold"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// checked makes a playbook of a description: it is valid without warnings, its own test passes, and neither
// has anything secret.
func checked(t *testing.T, of *scaffold.Description, options scaffold.Options) *scaffold.Draft {
	t.Helper()
	made, err := scaffold.MakeDraft(of, options)
	require.NoError(t, err)
	file := source.NewFile(made.Name+".yaml", made.Playbook)
	_, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{})
	require.Empty(t, found, "%s\n%s", file.FormatAll(found), made.Playbook)
	shown := string(made.Playbook) + string(made.Test) + strings.Join(made.Notes, "\n")
	require.NotContains(t, shown, "SECRET", "a secret got into a file")
	for _, one := range made.Connections {
		require.NotContains(t, one.Form, "SECRETSECRET")
		require.Contains(t, string(made.Playbook), "auth: "+one.Name)
	}
	require.NotContains(t, shown, "hunter2")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, made.Name+".yaml"), made.Playbook, 0o600))
	path := filepath.Join(dir, made.Name+"_test.yaml")
	require.NoError(t, os.WriteFile(path, made.Test, 0o600))
	suite, err := playtest.Load(path)
	require.NoError(t, err, "%s\n%s", made.Playbook, made.Test)
	for _, test := range suite.Tests.Tests {
		report := suite.Run(test, playtest.Options{})
		for _, failure := range report.Failures {
			t.Errorf("%s\n%s\n%s", failure.Text(filepath.Base(path)), made.Playbook, made.Test)
		}
	}
	return made
}

// styleOf is "-" for none.
func styleOf(made *scaffold.Draft) string {
	if made.Style == "" {
		return "-"
	}
	return made.Style
}

// TestCurl: each line gives a playbook whose test passes, in the style that the API has.
func TestCurl(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/curl.txt")
	require.NoError(t, err)
	cases := strings.Split(string(text), "\n## ")[1:]
	require.GreaterOrEqual(t, len(cases), 40)
	sinks := scaffold.Sinks
	for i, one := range cases {
		head, line, _ := strings.Cut(one, "\n")
		name, style, _ := strings.Cut(head, " ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of, err := scaffold.FromCurl(line)
			require.NoError(t, err)
			made := checked(t, of, scaffold.Options{Name: name, Sink: sinks[i%len(sinks)]})
			require.Equal(t, style, styleOf(made), "%s", made.Playbook)
			paged := style != "-" && style != scaffold.StylePoll && name != "graphql_mutation"
			require.Equal(t, paged, strings.Contains(string(made.Playbook), "next_call"), "%s", made.Playbook)
			if name == "graphql_nested" {
				require.Contains(t, string(made.Playbook), "collect: {path: data.viewer.mine.edges}")
			}
			if name == "openfda_events" { // its rows have no id
				made = checked(t, of, scaffold.Options{Name: name, Sink: "sqlite"})
				require.Contains(t, string(made.Playbook), "table: event\n")
				require.NotContains(t, string(made.Playbook), "key:")
			}
		})
	}
}

// fixtures are the files of a folder with the style that each says.
func fixtures(t *testing.T, pattern string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	require.NoError(t, err)
	styles := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		var head struct {
			Style string `json:"x-style"`
		}
		require.NoError(t, json.Unmarshal(data, &head))
		styles[name] = head.Style
	}
	return styles
}

// TestOpenAPI: each document gives a playbook whose test passes; the style is that of the API.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	all := fixtures(t, "testdata/openapi/*.json")
	require.GreaterOrEqual(t, len(all), 25)
	for path, style := range all {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			document, err := scaffold.ReadOpenAPI(data, "")
			require.NoError(t, err)
			of, err := document.DescribeOperation(document.Operations()[0].ID)
			require.NoError(t, err)
			made := checked(t, of, scaffold.Options{Name: name})
			require.Equal(t, style, styleOf(made), "%s", made.Playbook)
		})
	}
}

// TestHAR: each recording gives a playbook whose test passes; the style is found by comparing requests.
func TestHAR(t *testing.T) {
	t.Parallel()
	all := fixtures(t, "testdata/har/*.har")
	require.GreaterOrEqual(t, len(all), 10)
	for path, style := range all {
		name := strings.TrimSuffix(filepath.Base(path), ".har")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			of, err := scaffold.FromHAR(data)
			require.NoError(t, err)
			made := checked(t, of, scaffold.Options{Name: name})
			require.Equal(t, style, styleOf(made), "%s", made.Playbook)
		})
	}
}

// TestKeyOfEachElement: what an API answers about one element is a row with a key, so that another run
// does not write it twice.
func TestKeyOfEachElement(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/openapi/petstore.json")
	require.NoError(t, err)
	document, err := scaffold.ReadOpenAPI(data, "")
	require.NoError(t, err)
	of, err := document.DescribeOperation("showPetById")
	require.NoError(t, err)
	made := checked(t, of, scaffold.Options{Name: "pets", Each: "pet"})
	require.Regexp(t, `mode: upsert\s+key: id\n`, string(made.Playbook))
}

// TestSchemasThatNameEachOther: a sample of them ends, however many they are.
func TestSchemasThatNameEachOther(t *testing.T) {
	t.Parallel()
	var members []string
	for i := range 40 {
		members = append(members, fmt.Sprintf(`"m%d": {"$ref": "#/components/schemas/A"}`, i))
	}
	document, err := scaffold.ReadOpenAPI([]byte(`{"openapi": "3.0.3", "info": {"title": "a", "version": "1"}, "servers": [{"url": "https://a.test"}],
		"paths": {"/a": {"get": {"operationId": "a", "responses": {"200": {"description": "ok", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}}}}},
		"components": {"schemas": {"A": {"type": "object", "properties": {`+strings.Join(members, ", ")+`}}}}}`), "")
	require.NoError(t, err)
	of, err := document.DescribeOperation("a")
	require.NoError(t, err)
	made, err := scaffold.MakeDraft(of, scaffold.Options{})
	require.NoError(t, err)
	require.Less(t, len(made.Test), 200_000)
}

// TestMistakes: what cannot be read is said, and never a value of it.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for line, message := range map[string]string{
		"":                                        "expected a curl command",
		"wget https://a.test":                     "expected a curl command",
		"curl":                                    "has no URL",
		"curl 'https://a.test":                    "line 1",
		"curl ftp://a.test/x":                     "must look like https://host/path",
		"curl https://a.test $(cat x)":            "only a shell can evaluate",
		"curl https://a.test -d @SECRET.json":     "the body is read from a file",
		"curl https://a.test -F file=@SECRET":     "sends files",
		"curl https://a.test https://b.test":      "several URLs",
		"curl https://a.test -H":                  `curl option "header" has no value`,
		"curl https://a.test ^\n -H 'a: SECRET'":  "several URLs",
		"Invoke-WebRequest -Uri https://a.test":   "cURL (bash)",
		"curl --aws-sigv4 aws:amz https://a.test": "--aws-sigv4",
		"curl https://a.test -H @SECRET":          "headers are read from a file",
		"curl 'https://a.test/{a,b}/x'":           "expands to several",
		"curl 'https://a.test/x[1-3]'":            "expands to several",
	} {
		_, err := scaffold.FromCurl(line)
		require.ErrorContains(t, err, message, line)
		require.NotContains(t, err.Error(), "SECRET")
	}
	for text, message := range map[string]string{
		"":                         "not a HAR file",
		`{"log": {"entries": []}}`: "no request with a JSON response",
		`{"log": {"entries": [{"request": {"method": "GET", "url": "x://SECRET"}}]}}`: "no request with a JSON response",
	} {
		_, err := scaffold.FromHAR([]byte(text))
		require.ErrorContains(t, err, message)
		require.NotContains(t, err.Error(), "SECRET")
	}
	for text, message := range map[string]string{
		"": "OpenAPI", "[]": "OpenAPI", "a: [": "OpenAPI", `{"openapi": "3.0.0", "paths": 3}`: "read the OpenAPI document",
	} {
		_, err := scaffold.ReadOpenAPI([]byte(text), "")
		require.ErrorContains(t, err, message)
	}
	data, err := os.ReadFile("testdata/openapi/petstore.json")
	require.NoError(t, err)
	document, err := scaffold.ReadOpenAPI(data, "")
	require.NoError(t, err)
	_, err = document.DescribeOperation("showPetByID")
	require.ErrorContains(t, err, `did you mean "showPetById"?`)
	for _, options := range []scaffold.Options{{Sink: "mysql"}, {Style: "soap"}, {Each: "a b"}} {
		_, err = scaffold.MakeDraft(scaffold.FromStyle(scaffold.StylePage), options)
		require.ErrorContains(t, err, "expected")
	}
}

func FuzzCurl(f *testing.F) {
	text, err := os.ReadFile("testdata/curl.txt")
	require.NoError(f, err)
	for _, one := range strings.Split(string(text), "\n## ")[1:] {
		_, line, _ := strings.Cut(one, "\n")
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		of, err := scaffold.FromCurl(line)
		if err == nil {
			valid(t, of)
		}
	})
}

func FuzzHAR(f *testing.F) {
	names, err := filepath.Glob("testdata/har/*.har")
	require.NoError(f, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		of, err := scaffold.FromHAR(data)
		if err == nil {
			valid(t, of)
		}
	})
}

// valid makes a playbook of whatever was read: it has no errors.
func valid(t *testing.T, of *scaffold.Description) {
	t.Helper()
	made, err := scaffold.MakeDraft(of, scaffold.Options{})
	require.NoError(t, err)
	file := source.NewFile("made.yaml", made.Playbook)
	_, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{})
	require.Empty(t, found.Errors(), "%s\n%s", file.FormatAll(found), made.Playbook)
}

// TestStyles: each style gives a playbook whose test passes, with every sink, for one request and for each of a list.
func TestStyles(t *testing.T) {
	t.Parallel()
	for _, style := range scaffold.Styles {
		for _, sink := range scaffold.Sinks {
			for _, each := range []string{"", "account_id"} {
				if each != "" && (style == scaffold.StyleExport || style == scaffold.StyleWebhook) {
					continue
				}
				t.Run(style+"_"+sink+"_"+each, func(t *testing.T) {
					t.Parallel()
					made := checked(t, scaffold.FromStyle(style), scaffold.Options{Name: "made", Sink: sink, Each: each, Style: style})
					require.Equal(t, style, made.Style)
				})
			}
		}
	}
}

// TestALongLineOfCurl passes maxCurl.
func TestALongLineOfCurl(t *testing.T) {
	t.Parallel()
	_, err := scaffold.FromCurl("curl http://x -d '" + strings.Repeat("x", 1<<20) + "'")
	require.ErrorContains(t, err, "the limit is 1048576")
}
