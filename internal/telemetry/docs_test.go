package telemetry_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"reprise/internal/meter"
)

var update = flag.Bool("update", false, "write the table of metrics")

// root is the top of the repository, seen from this package.
const root = "../.."

// TestTableOfMetrics: docs/operations.md lists all metrics, as they are.
func TestTableOfMetrics(t *testing.T) {
	t.Parallel()
	name := filepath.Join(root, "docs", "operations.md")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	const begin, end = "<!-- metrics -->\n", "<!-- end -->"
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	table, after, found := strings.Cut(rest, end)
	require.True(t, found)
	want := "| metric | kind | labels | what |\n|---|---|---|---|\n"
	for _, m := range meter.All() {
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		want += fmt.Sprintf("| `%s` | %s | %s | %s |\n", m.Name, m.Kind, labels, m.Help)
	}
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(before+begin+want+end+after), 0o600))
		return
	}
	require.Equal(t, want, table, "go test ./internal/telemetry -run TestTableOfMetrics -update")
}

// dashboard is what the test reads of a dashboard of Grafana.
type dashboard struct {
	Panels []struct {
		ID      int
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct {
			Name  string
			Query any
		}
	}
}

// alerts are the rules of Prometheus.
type alerts struct {
	Groups []struct {
		Rules []struct {
			Alert       string
			Expr        string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

// expressions are those of the dashboard and the alerts, by where they stand.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	text, err := os.ReadFile(filepath.Join(root, "docs", "operations", "dashboard.json"))
	require.NoError(t, err)
	var board dashboard
	require.NoError(t, json.Unmarshal(text, &board))
	places := map[string]bool{}
	for _, panel := range board.Panels {
		place := fmt.Sprint(panel.GridPos)
		require.False(t, places[place], "panel %q lies on another", panel.Title)
		places[place] = true
		require.NotEmpty(t, panel.Targets, panel.Title)
		for i, target := range panel.Targets {
			found[fmt.Sprintf("%s %d", panel.Title, i)] = target.Expr
		}
	}
	for _, variable := range board.Templating.List {
		found["variable "+variable.Name] = fmt.Sprint(variable.Query)
	}
	text, err = os.ReadFile(filepath.Join(root, "docs", "operations", "alerts.yaml"))
	require.NoError(t, err)
	var rules alerts
	require.NoError(t, yaml.Unmarshal(text, &rules))
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			require.NotContains(t, found, rule.Alert)
			require.NotEmpty(t, rule.Labels["severity"], rule.Alert)
			require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			found[rule.Alert] = rule.Expr
		}
	}
	return found
}

var (
	metricInQuery = regexp.MustCompile(`(reprise|temporal)_[a-z_]+`)
	// labelsInQuery are those of a selector and of a grouping.
	selectors = regexp.MustCompile(`(reprise_[a-z_]+)\{([^}]*)\}`)
	matcher   = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)
	groupings = regexp.MustCompile(`\b(?:by|without) \(([^)]*)\)`)
)

// TestQueriesAreOfRealMetrics: dashboard and alerts ask for metrics and labels
// that a worker has.
func TestQueriesAreOfRealMetrics(t *testing.T) {
	t.Parallel()
	labels := scrapedLabels(t)
	asked := map[string]bool{}
	for where, query := range expressions(t) {
		require.Equal(t, strings.Count(query, "("), strings.Count(query, ")"), "%s: %s", where, query)
		var ofQuery []string
		for _, name := range metricInQuery.FindAllString(query, -1) {
			known, found := labels[name]
			require.True(t, found, "%s asks for %s, which no worker has", where, name)
			ofQuery = append(ofQuery, known...)
			asked[name] = true
		}
		for _, selector := range selectors.FindAllStringSubmatch(query, -1) {
			for _, match := range matcher.FindAllStringSubmatch(selector[2], -1) {
				require.Contains(t, labels[selector[1]], match[1], "%s: label of %s", where, selector[1])
			}
		}
		for _, grouping := range groupings.FindAllStringSubmatch(query, -1) {
			for _, label := range strings.Split(grouping[1], ", ") {
				require.Contains(t, append(ofQuery, "instance", "job"), label, "%s: %s", where, query)
			}
		}
	}
	for _, m := range meter.All() { // what nobody looks at need not be counted
		shown := slices.ContainsFunc([]string{"", "_sum", "_count", "_bucket"}, func(suffix string) bool { return asked[m.Name+suffix] })
		timed := strings.HasSuffix(m.Name, "_duration_seconds") // beside a counter that is shown
		require.True(t, shown || timed, "the dashboard leaves out %s", m.Name)
	}
}
