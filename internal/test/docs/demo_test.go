package docs_test

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/program/demoapi"
	"reprise/internal/program/try"
	"reprise/internal/test/docs"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// TestExamplesRunAgainstTheDemoAPI: each step of the pages that reads from the demo API does so as it is written: it does not fail, and what is a
// whole playbook has no warning.
func TestExamplesRunAgainstTheDemoAPI(t *testing.T) {
	t.Parallel()
	api := demoapi.New(demoapi.Options{})
	base, err := api.Start(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	pages, err := docs.WrittenExamples(root)
	require.NoError(t, err)
	tried := 0
	for _, examples := range pages {
		for _, example := range examples {
			if len(example.Words) == 0 || example.Words[0] != "yaml" || example.Is("yaml", "invalid") || !strings.Contains(example.Text, "tool: http") {
				continue
			}
			tried += tryExample(t, example, base)
		}
	}
	const least = 12
	require.GreaterOrEqual(t, tried, least)
}

// anyDatabase is behind every connection; a try does not open it.
type anyDatabase struct{}

func (anyDatabase) Connection(string) (string, bool) { return "postgres://u:p@127.0.0.1:1/d", true }

// tryExample tries the steps of an example that read from the demo API, and says how many.
func tryExample(t *testing.T, example *docs.Example, base string) (tried int) {
	t.Helper()
	place := example.File + ":" + strconv.Itoa(example.Line)
	file := source.NewFile(place, []byte(strings.ReplaceAll(example.Playbook(), "http://127.0.0.1:8088", base)))
	book, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{Workload: docs.ExampleWorkload()})
	if book == nil || len(found.Errors()) > 0 {
		return 0 // another test says so
	}
	workload := expression.MapOf(expression.MergeMaps(any(docs.ExampleWorkload()), any(book.Workload)))
	if api, isText := book.Workload["api"].(string); !isText || !strings.HasPrefix(api, base) {
		workload["api"] = base
	}
	for _, step := range book.Steps {
		if step.Action == nil {
			continue
		}
		if name, _ := book.ResolveAction(step.Action).ToolName(); name != "http" {
			continue
		}
		report, err := try.TryStep(t.Context(), try.Options{
			Book: book, Step: step.Name, Workload: workload, Pages: 100,
			Resources: activities.Resources{Directory: t.TempDir(), Connections: anyDatabase{}},
			Sleep:     func(context.Context, time.Duration) error { return nil },
		})
		if try.IsRefused(err) || err == nil && !servedByDemo(report, base) {
			continue // it needs what another step gives, writes, or asks another API
		}
		require.NoError(t, err, "%s: step %s", place, step.Name)
		tried++
		if report.Error != "" {
			t.Errorf("%s: step %s: %s", place, step.Name, report.Error)
		}
		if example.Whole() && len(report.Warnings) > 0 { // parts of playbooks leave out what they are not about
			t.Errorf("%s: step %s: %s", place, step.Name, strings.Join(report.Warnings, "\n"))
		}
	}
	return tried
}

// servedByDemo reports whether what was tried is a request that the demo API knows.
func servedByDemo(report *try.Report, base string) bool {
	if len(report.Attempts) == 0 || report.Attempts[0].Answer == nil {
		return false
	}
	first := report.Attempts[0]
	asked, err := url.Parse(first.Request.URL)
	return err == nil && strings.HasPrefix(first.Request.URL, base) && strings.HasPrefix(asked.Path, "/api/v1/") && first.Answer.Status != http.StatusNotFound
}
