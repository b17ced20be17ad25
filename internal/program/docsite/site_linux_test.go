package docsite_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise"
	"reprise/internal/program/docsite"
	"reprise/internal/test/testenv"
	"reprise/playbooks"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var patience = testenv.Within(30 * time.Second)

// questions are what people ask, and the sections that answer: one of them is among the first
// three that search finds.
var questions = map[string][]string{
	"why does my run hang?":                  {"waiting.html"},
	"I know Airbyte":                         {"coming-from.html#airbytes-low-code-cdk"},
	"max_wait":                               {"reference/retry.html#retrythenmax_wait", "language.html#requested-waits"},
	"Retry-After":                            {"reference/retry.html#retrythenmax_wait", "language.html#requested-waits"},
	"how do I stop after the first failure?": {"language.html#loop"},
	"what does exit code 4 mean?":            {"reference/exit-codes.html#exit-code-4"},
	"why was my POST sent twice?":            {"language.html#attempts-and-keys"},
	"run a playbook every night":             {"tutorial.html#9-test-it-and-put-it-on-a-schedule"},
	"read only new rows":                     {"tutorial.html#7-only-what-is-new"},
	"ask a person for approval":              {"reference/tools.html#approval", "recipes.html#approval-before-a-load"},
	"test a playbook without an API":         {"testing.html"},
	"write rows to PostgreSQL":               {"reference/tools.html#postgres", "reference/tools.html"},
	"run failed iterations again":            {"operations.html#dead-letters", "ui.html"},
	"pause a run":                            {"reference/commands.html#starter-pause"},
	"how are secrets kept out of logs?":      {"operations.html#logs", "operations.html#secret-results"},
	"limit requests per second":              {"language.html#rate_limit", "reference/step.html#steprate_limit"},
	"call another playbook":                  {"language.html#playbooks-in-playbooks"},
	"backfill two years":                     {"playbooks/backfill.html"},
	"replace a table":                        {"loading-data.html#full-refresh", "reference/tools.html#postgresreplace_where"},
	"what happens when a worker dies":        {"operations.html#when-things-go-wrong"},
	"pagination with a cursor":               {"playbooks/pagination_cursor.html"},
	"poll an export job":                     {"recipes.html#polling"},
	"webhook signature":                      {"language.html#triggers", "reference/playbook.html#metadatatriggersheader"},
	"unknown-name":                           {"reference/diagnostics.html#unknown-name"},
	"state_of_another":                       {"language.html#names-of-states"},
	"idempotency key":                        {"reference/step.html#stepidempotency"},
	"max_concurrency":                        {"reference/loop.html#loopmax_concurrency"},
	"dead letter":                            {"operations.html#dead-letters"},
	"schema_contract evolve":                 {"reference/tools.html#postgresschema_contract", "loading-data.html#when-the-source-changes"},
	"metrics and traces":                     {"operations.html#metrics-and-traces"},
	"try a step without writing":             {"writing.html#try-a-step"},
	"curl to playbook":                       {"writing.html#start-from-what-you-have"},
	"who may use the page":                   {"ui.html#who-may-use-it"},
	"only one run at a time for a key":       {"language.html#concurrency", "reference/playbook.html#concurrency"},
	"python in a step":                       {"reference/tools.html#python"},
	"there is no tool \"htp\"":               {"reference/diagnostics.html#unknown-tool"},
	"REPRISE_SECRET_KEY":                     {"reference/configuration.html#reprise_secret_key"},
	"reprise_dead_letters_total":             {"reference/metrics.html#reprise_dead_letters_total"},
	"what does partial_success mean":         {"reference/statuses.html#partial_success"},
}

// TestSite: pages fit small screens in both schemes, their links lead somewhere, nothing is from
// elsewhere, and search finds what people ask for.
func TestSite(t *testing.T) {
	t.Parallel()
	site, err := docsite.New(reprise.Documents, playbooks.FS)
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, site.Write(folder))
	server := httptest.NewServer(site)
	t.Cleanup(server.Close)
	browser := testenv.NewBrowser(t)
	var pages []string
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if name, _ := filepath.Rel(folder, path); strings.HasSuffix(name, ".html") {
			pages = append(pages, name)
		}
		return err
	}))
	require.Greater(t, len(pages), 50)
	open := func(path string) {
		browser.Open(server.URL + "/" + path)
		require.Eventually(t, func() bool {
			return browser.Eval(fmt.Sprintf(`location.pathname + location.search === %q && document.readyState === 'complete'`, "/"+path)) == "true"
		}, patience, 20*time.Millisecond, path)
	}

	anchors, links := map[string]bool{}, map[string][]string{}
	for _, page := range pages {
		open(page)
		for _, width := range []int{320, 1280} {
			browser.Screen(width, "light")
			require.Equal(t, "true", browser.Eval(`document.documentElement.scrollWidth <= innerWidth`), "%s at %d", page, width)
		}
		var found struct{ IDs, Links []string }
		text := browser.Eval(`JSON.stringify({ids: [...document.querySelectorAll('[id]')].map(e => e.id), links: [...document.links].map(a => a.href)})`)
		require.NoError(t, json.Unmarshal([]byte(text), &found))
		anchors[page] = true
		for _, id := range found.IDs {
			anchors[page+"#"+id] = true
		}
		links[page] = found.Links
		require.Equal(t, "1", browser.Eval(`document.querySelectorAll('h1').length`), page)
		require.Equal(t, "true", browser.Eval(`[...document.images].every(i => i.complete && i.naturalWidth > 0)`), "the pictures of %s", page)
		require.Equal(t, "0", browser.Eval(`[...document.querySelectorAll('[src], link[href]')].filter(e => !(e.src || e.href).startsWith(location.origin) && !(e.src || e.href).startsWith('data:')).length`))
	}
	for page, found := range links {
		for _, link := range found {
			path, ours := strings.CutPrefix(link, server.URL+"/")
			if !ours {
				require.Regexp(t, `^https?://[a-z]`, link)
				continue
			}
			path, err := url.PathUnescape(path)
			require.NoError(t, err)
			if filepath.Ext(path) == ".txt" { // a file and no page
				require.FileExists(t, filepath.Join(folder, path), page)
				continue
			}
			require.True(t, anchors[strings.TrimSuffix(path, "#")], "%s links to %s", page, path)
		}
	}

	var wrong []string
	for question, answers := range questions {
		open("search.html?q=" + url.QueryEscape(question))
		require.Eventually(t, func() bool { return browser.Eval(`document.querySelectorAll('#results a').length > 0`) == "true" }, patience, 20*time.Millisecond, question)
		var best []string
		require.NoError(t, json.Unmarshal([]byte(browser.Eval(`JSON.stringify([...document.querySelectorAll('#results a')].slice(0, 3).map(a => a.getAttribute('href')))`)), &best))
		answered := false
		for _, result := range best {
			for _, answer := range answers {
				answered = answered || result == answer
			}
		}
		if !answered {
			wrong = append(wrong, fmt.Sprintf("%q leads to %v", question, best))
		}
	}
	require.Empty(t, wrong)
}
