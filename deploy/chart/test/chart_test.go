// Package chart_test checks what the chart makes of values, with Helm's engine as a library.
package chart_test

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the expected files")

// render returns what the chart makes of values, one text of all objects in the order of files.
func render(values string) (string, error) {
	chart, err := loader.Load("..")
	if err != nil {
		return "", err
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return "", err
	}
	merged, err := chartutil.ToRenderValues(chart, given, chartutil.ReleaseOptions{Name: "clinic", Namespace: "reprise", Revision: 2, IsUpgrade: true}, nil)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, merged)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if text := strings.TrimSpace(files[name]); text != "" && !strings.HasSuffix(name, ".tpl") {
			all.WriteString("---\n# " + path.Base(name) + "\n" + strings.TrimPrefix(text, "---\n") + "\n")
		}
	}
	return all.String(), nil
}

// cases are the values in testdata, by name.
func cases(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.values.yaml")
	require.NoError(t, err)
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all[strings.TrimSuffix(filepath.Base(file), ".values.yaml")] = string(text)
	}
	require.Len(t, all, 2)
	return all
}

// TestGolden: the objects are those of the expected files, so that review reads what a change of a template means.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, values := range cases(t) {
		got, err := render(values)
		require.NoError(t, err, name)
		file := filepath.Join("testdata", name+".golden.yaml")
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), got, name)
	}
}

// TestMistakes: a value that the chart does not know, or that cannot work, is an error and not an object that does
// something else.
func TestMistakes(t *testing.T) {
	t.Parallel()
	base := cases(t)["small"]
	for _, test := range []struct{ old, new, problem string }{
		{"builds: [{id: v0.1.0,", "builds: [{id: v0.1.0, replicaz: 3,", "replicaz"},
		{"address: \"temporal:7233\"", "address: temporal", "address"},
		{"taskQueue: reprise", "tasQueue: reprise", "taskQueue"},
		{"reprise-worker:v0.1.0", "reprise-worker:latest", "image"},
		{"reprise-worker:v0.1.0", "reprise-worker", "image"},
		{"name: default", "name: Default_Workers", "name"},
		{"    taskQueue", "    resources: {requests: {cpu: 1}}\n    taskQueue", "limits"},
		{"    taskQueue", "    connections: {name: reprise}\n    taskQueue", "key"},
		{"    taskQueue", "    scaling: {minReplicas: 0, maxReplicas: 2, prometheus: \"http://p\"}\n    taskQueue", "minReplicas"},
		{"    taskQueue", "    env: {REPRISE_PAYLOAD_STORE: \"file:///mnt\"}\n    taskQueue", "is a folder"},
		{"    taskQueue", "    deployment: a.b\n    taskQueue", "deployment"},
		{"    taskQueue", "    env: {GOMEMLIMIT: 5}\n    taskQueue", "GOMEMLIMIT"},
		{"starterImage: registry.example.com/reprise-starter:v0.1.0\n", "", "starterImage is needed"},
		{"builds: [", "builds: [{id: v0.0.9, image: \"r/w:v0.0.9\"}, ", "has 2 builds and no deployment"},
	} {
		require.Contains(t, base, test.old)
		_, err := render(strings.Replace(base, test.old, test.new, 1))
		require.ErrorContains(t, err, test.problem, test.new)
	}
}

// TestDefaultsAreValid: the values that the chart comes with, which have no workers, are values.
func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	_, err := render("starterImage: r/s:v1\n")
	require.NoError(t, err)
	text, err := os.ReadFile("../values.yaml")
	require.NoError(t, err)
	var example strings.Builder // the commented worker, which is how people begin
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "#"); is && strings.HasPrefix(rest, "  ") {
			example.WriteString(rest)
		}
	}
	var workers []any
	require.NoError(t, yaml.Unmarshal([]byte(example.String()), &workers))
	require.Len(t, workers, 1)
	values, err := yaml.Marshal(map[string]any{"workers": workers, "starterImage": "r/s:v1"})
	require.NoError(t, err)
	got, err := render(string(values))
	require.NoError(t, err)
	require.Contains(t, got, "kind: ScaledObject")
}
