package telemetry_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"reprise/internal/base/meter"
)

// root is the top of the repository, seen from this package.
const root = "../../.."

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

// ofGrafana stand in queries for what Grafana puts there.
var ofGrafana = strings.NewReplacer("$__rate_interval", "5m")

// valuesOf is how a variable of a dashboard asks for the values of a label.
var valuesOf = regexp.MustCompile(`^map\[query:label_values\((.+), ([a-z_]+)\) `)

// parsed is a query as Prometheus reads it; nil is one of a variable that asks for no
// metric.
func parsed(t *testing.T, where, query string) parser.Expr {
	t.Helper()
	if strings.HasPrefix(where, "variable ") {
		found := valuesOf.FindStringSubmatch(query)
		if found == nil {
			return nil
		}
		query = fmt.Sprintf("count by (%s) (%s)", found[2], found[1])
	}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(ofGrafana.Replace(query))
	require.NoError(t, err, "%s: %s", where, query)
	return expr
}

// TestQueriesAreOfRealMetrics: dashboard and alerts are queries that Prometheus
// takes, and ask for metrics and labels that a worker has.
func TestQueriesAreOfRealMetrics(t *testing.T) {
	t.Parallel()
	labels := scrapedLabels(t)
	asked := map[string]bool{}
	for where, query := range expressions(t) {
		expr := parsed(t, where, query)
		if expr == nil {
			continue
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			switch node := node.(type) {
			case *parser.VectorSelector:
				require.Contains(t, labels, node.Name, "%s asks for what no worker has", where)
				asked[node.Name] = true
				for _, match := range node.LabelMatchers {
					require.Contains(t, append(labels[node.Name], "__name__"), match.Name, "%s: label of %s", where, node.Name)
				}
			case *parser.AggregateExpr:
				for _, label := range node.Grouping {
					require.Contains(t, append(labelsBelow(labels, node.Expr), "instance", "job"), label, "%s: %s", where, query)
				}
			}
			return nil
		})
	}
	for _, m := range meter.AllMetrics() { // what nobody looks at need not be counted
		shown := slices.ContainsFunc([]string{"", "_sum", "_count", "_bucket"}, func(suffix string) bool { return asked[m.Name+suffix] })
		timed := strings.HasSuffix(m.Name, "_duration_seconds") // beside a counter that is shown
		require.True(t, shown || timed, "the dashboard leaves out %s", m.Name)
	}
}

// labelsBelow are those of the metrics in an expression.
func labelsBelow(labels map[string][]string, expr parser.Expr) (all []string) {
	for _, selectors := range parser.ExtractSelectors(expr) {
		for _, match := range selectors {
			if match.Name == "__name__" {
				all = append(all, labels[match.Value]...)
			}
		}
	}
	return all
}
