package connector_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/connector"
	"reprise/internal/test/samples"
	"reprise/interpreter/playbook"
)

// TestRestAPIGolden: each configuration gives a valid playbook without a secret, for each sink. What was not converted
// is written at its place.
func TestRestAPIGolden(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/dlt/*.[pj]*")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 12)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, sink := range []string{"postgres", "file", "none", "sqlite"} {
				result, err := connector.ConvertRestAPI(data, connector.Options{Name: name, Sink: sink})
				require.NoError(t, err)
				require.Empty(t, problemsOf(result), "%s", result.Playbook)
				require.Equal(t, len(result.Gaps), strings.Count(string(result.Playbook), "# not converted: "), "%s", result.Playbook)
				for _, secret := range []string{"sk_live", "secret-password", "very-secret"} {
					require.NotContains(t, string(result.Playbook)+string(result.Test), secret)
				}
				if sink == "sqlite" {
					require.Empty(t, failuresOf(t, result), "%s\n%s", result.Playbook, result.Test)
					samples.Golden(t, "dlt/"+name, string(result.Playbook)+"---\n"+string(result.Test))
				}
			}
		})
	}
}

// TestDestinationOfPipeline: a pipeline that writes elsewhere than the playbook has a note.
func TestDestinationOfPipeline(t *testing.T) {
	t.Parallel()
	const config = `config: RESTAPIConfig = {"client": {"base_url": "https://api.a.test", "paginator": "single_page"},
  "resources": [{"name": "a", "primary_key": "id", "write_disposition": "merge", "endpoint": {"path": "a", "data_selector": "a"}, "max_table_nesting": 0}]}
`
	for source, want := range map[string][]string{
		`dlt.pipeline("a", destination="postgres")`:                nil,
		`dlt.pipeline("a", destination=dlt.destinations.duckdb())`: {"the source names the destination duckdb; the playbook's is postgres, which --sink chooses"},
		"": nil,
	} {
		result, err := connector.ConvertRestAPI([]byte(config+source+"\n"), connector.Options{Name: "a", Sink: "postgres"})
		require.NoError(t, err)
		require.Equal(t, want, result.Notes, source)
	}
}

// TestRestAPIRefuses: what is no configuration says why.
func TestRestAPIRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a = 1":                           "expected a configuration of dlt's rest_api: there is no dict with client and resources",
		`{"a": 1}`:                        "it has no client and resources",
		`{"client": {}, "resources": 3}`:  "its resources are no list",
		`{"client": {}, "resources": []}`: "it has no resource that is selected",
		`{"client": {}, "resources": ["a", {"name": "a"}]}`:               `the resource "a" is defined twice`,
		`{"client": {}, "resources": [{"endpoint": "a"}]}`:                "a resource has no constant name",
		`{"client": {}, "resources": [{"name": "a", "selected": false}]}`: "it has no resource that is selected",
	} {
		_, err := connector.ConvertRestAPI([]byte(text), connector.Options{Name: "a"})
		require.ErrorContains(t, err, want, text)
	}
	_, err := connector.ConvertRestAPI([]byte(`{"client": {}, "resources": ["a", {"name": "b", "selected": false}]}`), connector.Options{Name: "a", Streams: []string{"c"}})
	require.EqualError(t, err, `the configuration has no resource "c"; it has a, b`)
	names, err := connector.ResourceNames([]byte(`{"client": {}, "resources": ["a", {"name": "b", "selected": false}]}`), 0)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names)
}

// TestRestAPIParentsOfParents: resources that need each other's rows, or those of nobody, are read once, which is said.
func TestRestAPIParentsOfParents(t *testing.T) {
	t.Parallel()
	result, err := connector.ConvertRestAPI([]byte(`{"client": {"base_url": "https://a.test", "paginator": "single_page"}, "resources": [
		{"name": "a", "endpoint": {"path": "a/{resources.b.id}/x", "data_selector": "$"}}, {"name": "b", "endpoint": {"path": "b/{resources.a.id}/x", "data_selector": "$"}},
		{"name": "c", "endpoint": {"path": "c/{resources.d.id}/x", "data_selector": "$"}}]}`), connector.Options{Name: "a"})
	require.NoError(t, err)
	require.Empty(t, problemsOf(result), "%s", result.Playbook)
	var gaps []string
	for _, gap := range result.Gaps {
		gaps = append(gaps, gap.Stream+" "+gap.String())
	}
	require.Equal(t, []string{
		"b resources: a needs the rows of this one; the request is made once", "b path: the field id of a parent",
		"c resources: there is no resource d whose rows can be read; the request is made once", "c path: the field id of a parent",
	}, gaps, "%s", result.Playbook)
}

// TestRestAPIOddResources: a resource named as the step where runs start, a method that is none, and a parameter that is a
// dict make a valid playbook, which runs; what was left out is said.
func TestRestAPIOddResources(t *testing.T) {
	t.Parallel()
	result, err := connector.ConvertRestAPI([]byte(`{"client": {"base_url": "https://a.test", "paginator": "single_page"}, "resources": [
		{"name": "settings", "endpoint": {"path": "settings", "data_selector": "$", "method": "ASYNC"}},
		{"name": "start", "endpoint": {"path": "start", "data_selector": "$", "params": {"banks": {"a": 1}, "lists": [{"a": 1}], "n": 2}}}]}`), connector.Options{Name: "a"})
	require.NoError(t, err)
	require.Empty(t, problemsOf(result), "%s", result.Playbook)
	require.Empty(t, failuresOf(t, result), "%s\n%s", result.Playbook, result.Test)
	require.Equal(t, []string{"settings", "start"}, result.Streams)
	var gaps []string
	for _, gap := range result.Gaps {
		gaps = append(gaps, gap.Stream+" "+gap.String())
	}
	require.Equal(t, []string{"settings method: ASYNC is no method of HTTP; GET is used", "start params: banks: a dict", "start params: lists: a list of dicts"}, gaps)
	many := `"a0"`
	for i := range playbook.MaxSteps {
		many += fmt.Sprintf(`, "a%d"`, i+1)
	}
	_, err = connector.ConvertRestAPI([]byte(`{"client": {"base_url": "https://a.test"}, "resources": [`+many+`]}`), connector.Options{Name: "a"})
	require.EqualError(t, err, "501 steps are more than a playbook may have (500): choose streams with --stream, or write a playbook for each with --per-stream")
}
