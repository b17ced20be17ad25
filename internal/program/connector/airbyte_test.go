package connector_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/connector"
	"reprise/internal/program/playtest"
	"reprise/internal/test/samples"
)

// manifests are the small ones of testdata, by their names.
func manifests(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/manifests/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 20)
	found := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		found[strings.TrimSuffix(filepath.Base(path), ".yaml")] = data
	}
	return found
}

// TestGolden: each manifest gives a valid playbook without a secret, for each sink. What was not converted is written
// at its place.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, data := range manifests(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, sink := range []string{"postgres", "file", "none", "sqlite"} {
				result, err := connector.ConvertManifest(data, connector.Options{Name: name, Sink: sink})
				require.NoError(t, err)
				require.Empty(t, problemsOf(result), "%s", result.Playbook)
				require.Equal(t, len(result.Gaps), strings.Count(string(result.Playbook), "# not converted: "), "%s", result.Playbook)
				if sink != "postgres" { // where a step that keeps its state needs a server
					require.Empty(t, failuresOf(t, result), "%s\n%s", result.Playbook, result.Test)
				}
				if sink == "sqlite" {
					samples.Golden(t, "playbooks/"+name, string(result.Playbook)+"---\n"+string(result.Test))
				}
			}
		})
	}
}

// failuresOf are the failures of the test that belongs to a playbook.
func failuresOf(t *testing.T, result *connector.Result) (failures []string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, result.Name+".yaml"), result.Playbook, 0o600))
	path := filepath.Join(dir, result.Name+"_test.yaml")
	require.NoError(t, os.WriteFile(path, result.Test, 0o600))
	suite, err := playtest.Load(path)
	if err != nil {
		return []string{err.Error()}
	}
	for _, test := range suite.Tests.Tests {
		for _, failure := range suite.Run(test, playtest.Options{}).Failures {
			failures = append(failures, failure.Text(filepath.Base(path)))
		}
	}
	return failures
}

// TestStreams: a stream is converted with its parents, which write nothing, and another one is a mistake.
func TestStreams(t *testing.T) {
	t.Parallel()
	data := manifests(t)["parent"]
	names, err := connector.StreamNames(data)
	require.NoError(t, err)
	require.Equal(t, []string{"projects", "tasks", "members"}, names)
	result, err := connector.ConvertManifest(data, connector.Options{Name: "work", Streams: []string{"tasks"}})
	require.NoError(t, err)
	require.Equal(t, []string{"tasks"}, result.Streams)
	require.Equal(t, 1, strings.Count(string(result.Playbook), "table:"), "%s", result.Playbook)
	require.Equal(t, 2, strings.Count(string(result.Playbook), "- step:"), "%s", result.Playbook)
	_, err = connector.ConvertManifest(data, connector.Options{Name: "work", Streams: []string{"nobody"}})
	require.EqualError(t, err, `the manifest has no stream "nobody"; it has projects, tasks, members`)
}

// TestUnreadable: what is no manifest says why.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[]":                           "the manifest is no map with version and streams",
		"version: 1":                   "the manifest has no list of streams; expected a low-code manifest of Airbyte",
		"a: [":                         "did not find expected node content",
		"streams: ['#/definitions/a']": "the reference #/definitions/a leads to nothing",
		"definitions: {a: {$ref: '#/definitions/a'}}\nstreams: []":             "the reference #/definitions/a leads back to itself",
		"definitions: {a: [1]}\nstreams: [{$ref: '#/definitions/a', name: b}]": "#/definitions/a is no map, and has keys laid over it",
	} {
		_, err := connector.ConvertManifest([]byte(text), connector.Options{Name: "a"})
		require.ErrorContains(t, err, want, text)
	}
	_, err := connector.ConvertManifest([]byte("streams: []"), connector.Options{Name: "a", Sink: "bucket"})
	require.ErrorContains(t, err, `the sink "bucket" is unknown`)
}

// TestFilesBesides: schemas and the specification may be in files of their own.
func TestFilesBesides(t *testing.T) {
	t.Parallel()
	manifest := `
version: 0.1.0
streams:
  - name: users
    primary_key: id
    schema_loader: {file_path: "./source_users/schemas/{{ parameters['name'] }}.json"}
    $parameters: {name: users}
    retriever:
      requester: {url_base: "https://api.users.test", path: "{{ config['team'] }}/users", request_headers: {X-Secret: "{{ config['pass'] }}"}}
      record_selector: {extractor: {field_path: []}}
`
	files := map[string]string{
		"spec.yaml":                         "connectionSpecification: {type: object, required: [team], properties: {team: {type: string, examples: [red]}, pass: {type: string, airbyte_secret: true}}}",
		"./source_users/schemas/users.json": `{"type": "object", "properties": {"id": {"type": "integer"}, "born": {"type": ["null", "string"], "format": "date"}}}`,
	}
	result, err := connector.ConvertManifest([]byte(manifest), connector.Options{Name: "users", Read: func(path string) ([]byte, error) {
		if text, has := files[path]; has {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}})
	require.NoError(t, err)
	require.Empty(t, problemsOf(result))
	require.Contains(t, string(result.Playbook), "team: red")
	require.Contains(t, string(result.Playbook), "columns: {born: date}")
	require.Len(t, result.Connections, 1)
	require.Equal(t, "header:X-Secret: PASS@https://api.users.test", result.Connections[0].Form)
}

// TestExpiryOfTokens: a field that is named as a time says when a token ends, in seconds since 1970, and another one for how long it is valid.
func TestExpiryOfTokens(t *testing.T) {
	t.Parallel()
	data := manifests(t)["refresh_token"]
	for field, want := range map[string]string{"expires_at": "{{ date(response.expires_at) }}", "expires_in": "{{ response.expires_in }}"} {
		changed := strings.ReplaceAll(string(data), "expires_in_name: expires_at", "expires_in_name: "+field)
		require.Contains(t, changed, field)
		result, err := connector.ConvertManifest([]byte(changed), connector.Options{Name: "deals", Sink: "none"})
		require.NoError(t, err)
		forms := ""
		for _, connection := range result.Connections {
			forms += connection.Form
		}
		require.Contains(t, forms, want)
	}
}
