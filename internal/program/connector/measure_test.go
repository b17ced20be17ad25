package connector_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/program/connector"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// TestMeasure counts what of the manifests in a folder becomes playbooks that are valid: each stream alone, with its
// parents. REPRISE_AIRBYTE_MANIFESTS names the folder, which has a manifest.yaml in a folder for each connector.
func TestMeasure(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("REPRISE_AIRBYTE_MANIFESTS")
	if folder == "" {
		t.Skip("REPRISE_AIRBYTE_MANIFESTS is not set")
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*", "*.yaml"))
	require.NoError(t, err)
	m := measured{reasons: map[string]int{}, components: map[string]int{}, converted: map[string]int{}}
	for _, path := range paths {
		m.manifest(t, path)
	}
	m.print(t)
}

// measured are the figures of many manifests.
type measured struct {
	manifests, unread                  int
	tests, failed                      int
	streams, custom                    int
	valid, whole, invalid, customValid int
	reasons, components, converted     map[string]int
}

func (m *measured) manifest(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	m.manifests++
	names, err := connector.StreamNames(data)
	if err != nil {
		m.unread++
		t.Logf("%s: %v", path, err)
		return
	}
	read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(filepath.Dir(path), name)) }
	name := strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "source-")
	for _, stream := range slices.Compact(slices.Sorted(slices.Values(names))) {
		m.stream(t, name, data, stream, read)
	}
	result, err := connector.ConvertManifest(data, connector.Options{Name: name, Read: read})
	if err != nil {
		t.Logf("%s: %v", name, err)
		return
	}
	if problems := problemsOf(result); problems != "" {
		m.reasons["whole connector: "+strings.SplitN(problems, "\n", 2)[0]]++
	}
	m.tests++
	if failures := failuresOf(t, result); len(failures) > 0 {
		m.failed++
		m.reasons["test of "+name+": "+oneLine(failures[0])]++
	}
	if out := os.Getenv("REPRISE_AIRBYTE_OUT"); out != "" {
		require.NoError(t, os.WriteFile(filepath.Join(out, result.Name+".yaml"), result.Playbook, 0o600))
		if result.Test != nil {
			require.NoError(t, os.WriteFile(filepath.Join(out, result.Name+"_test.yaml"), result.Test, 0o600))
		}
	}
}

// oneLine is the beginning of a text.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return text[:min(len(text), 300)]
}

func problemsOf(result *connector.Result) string {
	file := source.NewFile(result.Name+".yaml", result.Playbook)
	_, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{})
	return file.FormatAll(found.Errors())
}

func (m *measured) stream(t *testing.T, name string, data []byte, stream string, read func(string) ([]byte, error)) {
	m.streams++
	result, err := connector.ConvertManifest(data, connector.Options{Name: name, Streams: []string{stream}, Read: read})
	if err != nil {
		m.reasons[err.Error()]++
		m.invalid++
		return
	}
	python := slices.ContainsFunc(result.Gaps, func(gap connector.Gap) bool { return strings.HasPrefix(gap.Component, "Custom") })
	problems := problemsOf(result)
	for _, gap := range result.Gaps {
		m.components[gap.Component]++
	}
	switch {
	case python:
		m.custom++
		if problems == "" {
			m.customValid++
		}
	case problems == "":
		m.valid++
		if len(result.Gaps) == 0 {
			m.whole++
		}
	default:
		m.invalid++
		first := strings.SplitN(problems, "\n", 3)
		m.reasons[strings.Join(first[:min(2, len(first))], " | ")+" ["+stream+"]"]++
	}
	if !python {
		for _, gap := range result.Gaps {
			m.converted[gap.Component+": "+gap.Reason+" ["+name+"]"]++
		}
	}
}

func (m *measured) print(t *testing.T) {
	declarative := m.streams - m.custom
	t.Logf("%d manifests, %d unread; %d streams, %d with Python (%d of them valid)", m.manifests, m.unread, m.streams, m.custom, m.customValid)
	t.Logf("%d without Python: %d valid (%.1f%%), %d of them without a gap", declarative, m.valid, 100*float64(m.valid)/float64(declarative), m.whole)
	t.Logf("%d tests, %d of them fail", m.tests, m.failed)
	for _, one := range []struct {
		what   string
		counts map[string]int
	}{{"problems", m.reasons}, {"gaps by component", m.components}, {"gaps of streams without Python", m.converted}} {
		t.Log(one.what)
		keys := make([]string, 0, len(one.counts))
		for key := range one.counts {
			keys = append(keys, key)
		}
		slices.SortFunc(keys, func(a, b string) int { return cmp.Or(one.counts[b]-one.counts[a], strings.Compare(a, b)) })
		for _, key := range keys {
			t.Logf("  %4d %s", one.counts[key], key)
		}
	}
	figures, err := json.Marshal(map[string]int{"streams": m.streams, "declarative": declarative, "valid": m.valid, "whole": m.whole})
	require.NoError(t, err)
	fmt.Println(string(figures))
}
