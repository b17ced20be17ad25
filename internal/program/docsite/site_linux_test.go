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
	"why does my run hang?":                    {"how-to/why-a-run-hangs.html"},
	"I know Airbyte":                           {"coming-from.html#airbytes-low-code-cdk"},
	"what is different from Temporal by hand?": {"coming-from.html#temporal-by-hand"},
	"max_wait":                               {"reference/retry.html#retrythenmax_wait"},
	"Retry-After":                            {"concepts/waits.html#waits-requested-by-the-server", "reference/retry.html#retrythenmax_wait"},
	"how do I stop after the first failure?": {"concepts/loops.html#the-result-of-a-loop"},
	"what does exit code 4 mean?":            {"reference/exit-codes.html#exit-code-4"},
	"why was my POST sent twice?":            {"concepts/keys.html#what-is-sent-twice", "concepts/keys.html"},
	"run a playbook every night":             {"tutorial.html#9-test-it-and-put-it-on-a-schedule", "how-to/load-a-table.html", "how-to/schedule.html"},
	"read only new rows":                     {"tutorial.html#7-only-what-is-new", "concepts/state.html#what-a-run-reads"},
	"ask a person for approval":              {"how-to/approval.html", "reference/tools.html#approval"},
	"test a playbook without an API":         {"how-to/test-a-playbook.html"},
	"write rows to PostgreSQL":               {"reference/tools.html#postgres"},
	"run failed iterations again":            {"how-to/failed-iterations.html"},
	"pause a run":                            {"how-to/steer-a-run.html", "reference/commands.html#starter-pause"},
	"how are secrets kept out of logs?":      {"concepts/security.html#how-secrets-are-kept-out-of-logs"},
	"limit requests per second":              {"concepts/waits.html#rate-limits"},
	"call another playbook":                  {"concepts/runs.html#playbooks-in-playbooks"},
	"backfill two years":                     {"how-to/backfill.html"},
	"replace a table":                        {"how-to/replace-a-table.html"},
	"what happens when a worker dies":        {"concepts/keys.html#what-is-sent-twice"},
	"pagination with a cursor":               {"playbooks/pagination_cursor.html", "how-to/pages-by-cursor.html"},
	"poll an export job":                     {"how-to/export-jobs.html"},
	"webhook signature":                      {"how-to/call-from-outside.html#a-signed-delivery", "reference/playbook.html#metadatatriggersheader"},
	"a GitHub webhook starts a run":          {"how-to/call-from-outside.html", "how-to/call-from-outside.html#a-signed-delivery"},
	"unknown-name":                           {"reference/diagnostics.html#unknown-name"},
	"state_of_another":                       {"concepts/state.html#names-of-states"},
	"idempotency key":                        {"concepts/keys.html", "reference/step.html#stepidempotency"},
	"max_concurrency":                        {"reference/loop.html#loopmax_concurrency"},
	"dead letter":                            {"concepts/loops.html#failed-iterations", "how-to/failed-iterations.html", "reference/commands.html#starter-dead-letters"},
	"schema_contract evolve":                 {"how-to/changing-sources.html", "reference/tools.html#postgresschema_contract"},
	"metrics and traces":                     {"how-to/read-metrics.html", "how-to/read-metrics.html#traces"},
	"try a step without writing":             {"how-to/write-a-playbook.html#try-a-step"},
	"curl to playbook":                       {"how-to/write-a-playbook.html", "how-to/write-a-playbook.html#start-from-what-you-have"},
	"who may use the page":                   {"how-to/page-of-runs.html#who-may-use-it"},
	"only one run at a time for a key":       {"concepts/concurrency.html"},
	"python in a step":                       {"reference/tools.html#python"},
	"what does partial_success mean":         {"reference/statuses.html#partial_success"},
	"deploy on Kubernetes":                   {"how-to/deploy.html#kubernetes", "how-to/deploy.html"},
	"change REPRISE_SECRET_KEY":              {"how-to/secrets.html#change-reprise_secret_key"},
	"a worker needs too much memory":         {"how-to/size-a-worker.html", "how-to/size-a-worker.html#three-kinds-of-memory"},
	"upgrade workers":                        {"how-to/upgrade.html"},
	"restore a backup":                       {"how-to/back-up.html", "how-to/back-up.html#restore-a-destination", "how-to/back-up.html#restore-temporal"},
	"write my own tool":                      {"how-to/write-a-tool.html"},
	"where is the watermark kept?":           {"concepts/state.html#where-the-state-is", "concepts/state.html#when-the-watermark-moves", "concepts/state.html"},
	"there is no tool \"htp\"":               {"reference/diagnostics.html#unknown-tool"},
	"REPRISE_SECRET_KEY":                     {"reference/configuration.html#reprise_secret_key"},
	"REPRISE_HEALTH_ADDRESS":                 {"reference/configuration.html#reprise_health_address"},
	"REPRISE_METRICS_ADDRESS":                {"reference/configuration.html#reprise_metrics_address"},
	"reprise_dead_letters_total":             {"reference/metrics.html#reprise_dead_letters_total"},
	"starter validate flags":                 {"reference/commands.html#starter-validate"},
	"add_time":                               {"reference/expressions.html#add_time"},
	"payload_too_large":                      {"concepts/loops.html#large-values", "how-to/size-a-worker.html"},

	"the API answers 404 after the last page": {"how-to/pages-by-offset.html"},
	"Stripe starting_after":                   {"how-to/pages-by-cursor.html"},
	"Stripe API key":                          {"how-to/secrets.html"},
	"nextRecordsUrl":                          {"how-to/pages-by-link.html"},
	"combine the results of two APIs":         {"playbooks/routing.html"},
	"write rows to a table after approval":    {"how-to/approval.html"},
	"download the file of an export job":      {"how-to/export-jobs.html", "how-to/read-a-file.html"},
	"write a CSV file":                        {"how-to/read-a-file.html", "reference/tools.html#file"},
	"bearer token for GitHub":                 {"how-to/write-a-playbook.html#start-from-what-you-have"},
	"loop over pages":                         {"how-to/pages-by-number.html"},
	"set an input on the command line":        {"concepts/runs.html#inputs"},
	"send an email when it fails":             {"how-to/notify.html"},
	"change the speed of a run":               {"how-to/steer-a-run.html"},

	"timezone":          {"how-to/schedule.html#when-clocks-move"},
	"rate limit":        {"concepts/waits.html#rate-limits"},
	"backoff":           {"concepts/waits.html#between-attempts"},
	"dedupe":            {"how-to/load-a-table.html#rows-that-the-table-already-has"},
	"cron":              {"how-to/schedule.html"},
	"secret":            {"how-to/secrets.html"},
	"webhook":           {"how-to/call-from-outside.html"},
	"retries":           {"concepts/attempts.html"},
	"dead letter queue": {"how-to/failed-iterations.html"},
	"docker":            {"how-to/deploy.html"},
	"k8s":               {"how-to/deploy.html#kubernetes"},
	"checkpoint":        {"concepts/state.html#when-the-watermark-moves"},
	"monitoring":        {"how-to/read-metrics.html"},
}

// startSite serves the site, written into a folder too, to a browser, whose pages open opens.
func startSite(t *testing.T, folder string) (url string, browser *testenv.Browser, open func(path string)) {
	t.Helper()
	site, err := docsite.New(reprise.Documents, playbooks.FS, map[string]string{"llms-full.txt": "everything"})
	require.NoError(t, err)
	require.NoError(t, site.Write(folder))
	server := httptest.NewServer(site)
	t.Cleanup(server.Close)
	browser = testenv.NewBrowser(t)
	return server.URL, browser, func(path string) {
		t.Helper()
		browser.Open(server.URL + "/" + path)
		require.Eventually(t, func() bool {
			return browser.Eval(fmt.Sprintf(`location.pathname + location.search === %q && document.readyState === 'complete'`, "/"+path)) == "true"
		}, patience, 20*time.Millisecond, path)
	}
}

// TestSite: pages fit small screens in both schemes, their links lead somewhere, nothing is from
// elsewhere, and search finds what people ask for.
func TestSite(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server, browser, open := startSite(t, folder)
	require.FileExists(t, filepath.Join(folder, "llms-full.txt"))
	var pages []string
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if name, _ := filepath.Rel(folder, path); strings.HasSuffix(name, ".html") {
			pages = append(pages, name)
		}
		return err
	}))
	require.Greater(t, len(pages), 50)

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
	back := func(scheme string) string {
		browser.Screen(1280, scheme)
		return browser.Eval(`getComputedStyle(document.body).backgroundColor`)
	}
	require.NotEqual(t, back("light"), back("dark"))
	for page, found := range links {
		for _, link := range found {
			path, ours := strings.CutPrefix(link, server+"/")
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
			if filepath.Ext(path) != "" && !strings.Contains(path, ".html") {
				require.FileExists(t, filepath.Join(folder, path), "%s links to it", page)
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

// TestPage: a page leads to its neighbours, its code has colours and can be copied, output cannot, and diagrams are dark
// where the page is.
func TestPage(t *testing.T) {
	t.Parallel()
	_, browser, open := startSite(t, t.TempDir())
	open("concepts/attempts.html")
	require.Equal(t, "true", browser.Eval(`document.querySelector('.around [rel=prev]').href.endsWith('/concepts/expressions.html') && document.querySelector('.around [rel=next]').href.endsWith('/concepts/keys.html')`))
	require.Equal(t, "true", browser.Eval(`document.querySelectorAll('pre .nt').length > 10 && document.querySelectorAll('pre .si').length > 3`))
	require.Equal(t, "0", browser.Eval(`document.querySelectorAll('[style]').length`))
	require.Equal(t, "true", browser.Eval(`[...document.querySelectorAll('main pre')].every(pre => !!pre.querySelector('.language-text') !== !!pre.parentElement.querySelector(':scope > .copy'))`))
	filter := `getComputedStyle(document.querySelector('img[src*="pictures/"]')).filter`
	browser.Screen(1280, "light")
	require.Equal(t, "none", browser.Eval(filter))
	browser.Screen(1280, "dark")
	require.NotEqual(t, "none", browser.Eval(filter))
	for _, scheme := range []string{"light", "dark"} {
		browser.Screen(1280, scheme)
		require.Empty(t, browser.Eval(faintWords), scheme)
	}
	browser.Click(".copy")
	require.Eventually(t, func() bool {
		return strings.Contains(browser.Eval(`document.querySelector('.copy').textContent`), "ed")
	}, patience, 20*time.Millisecond)
	open("index.html")
	require.Equal(t, "0", browser.Eval(`document.querySelectorAll('.around [rel=prev]').length`))
}

// faintWords are the words of code, and buttons, that stand out less than 4.5 to 1 from what is behind them.
const faintWords = `(() => {
  const channel = value => { value /= 255; return value <= .03928 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4; };
  const light = colour => { const [r, g, b] = colour.match(/[0-9.]+/g).map(Number); return .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b); };
  const behind = e => { for (; e; e = e.parentElement) { const colour = getComputedStyle(e).backgroundColor; if (!/, 0\)$/.test(colour)) return colour; } return 'rgb(255, 255, 255)'; };
  return [...document.querySelectorAll('pre span, .copy, .around span')].filter(e => {
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
    return (a + .05) / (b + .05) < 4.5;
  }).map(e => e.className + ' ' + e.textContent).slice(0, 3).join('; ');
})()`

// TestSearchWhileTyping: search finds sections from the beginnings of words on, and keys choose among them.
func TestSearchWhileTyping(t *testing.T) {
	t.Parallel()
	_, browser, open := startSite(t, t.TempDir())
	open("tutorial.html")
	listed := func(want bool) {
		require.Eventually(t, func() bool {
			return (browser.Eval(`String(document.getElementById('suggestions').hidden)`) == "false") == want
		}, patience, 20*time.Millisecond)
	}
	typed := func(text string) {
		browser.Eval(fmt.Sprintf(`(() => { const q = document.getElementById('q'); q.focus(); q.value = %q; q.dispatchEvent(new Event('input')); })()`, text))
	}
	press := func(key string) {
		browser.Eval(fmt.Sprintf(`document.getElementById('q').dispatchEvent(new KeyboardEvent('keydown', {key: %q, cancelable: true}))`, key))
	}
	typed("backo")
	listed(true)
	press("Escape")
	listed(false)
	typed("backoff")
	listed(true)
	require.Equal(t, "concepts/waits.html#between-attempts", browser.Eval(`document.querySelector('#suggestions a').getAttribute('href')`))
	press("ArrowDown")
	require.Equal(t, "suggestion-0", browser.Eval(`document.getElementById('q').getAttribute('aria-activedescendant')`))
	press("Enter")
	require.Eventually(t, func() bool {
		return browser.Eval(`location.pathname + location.hash`) == "/concepts/waits.html#between-attempts"
	}, patience, 20*time.Millisecond)
	typed("zzzzqqq")
	listed(false)
}
