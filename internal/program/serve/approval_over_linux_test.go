package serve_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

// invoices asks with figures, as a person in a finance department reads them.
const invoices = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: invoices}
workload: {other: "", total: "1 234 567,89 EUR"}
workflow:
  - step: ask
    tool: approval
    timeout: 10m
    on_timeout: reject
    message: |
      # Book the invoices of {{ total }}?

      | supplier | invoice | net amount | VAT | total | due | account |
      |---|---|---:|---:|---:|---|---|
      | Northern Lighting | 2026-10-0815 | 1,037,452.00 | 197,115.88 | 1,234,567.88 | 2026-12-01 | 4711 |
    on_start: {url: "{{ other }}", body: {token: "{{ callback.token }}", complete: "{{ callback.complete }}", page: "{{ callback.page }}"}}
`

// TestLinksThatAreOver: a link that is used, late or closed shows what was asked and how that ended, and no button. In each state the
// page fits a phone, and each text has a contrast of at least 4.5.
func TestLinksThatAreOver(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	at := func(token string) string { return a.url + "/v1/approvals/" + token }
	run, used := a.ask("used", invoices)
	require.Equal(t, http.StatusSeeOther, a.post(used, url.Values{"option": {"approve"}, "by": {"Ada"}}).status)
	a.ends(run)
	run, late := a.ask("late", strings.Replace(invoices, "10m", "1s", 1))
	a.ends(run)
	run, fails := a.ask("fails", strings.NewReplacer("10m", "1s", "    on_timeout: reject\n", "").Replace(invoices))
	_ = run.Get(t.Context(), nil)
	closed, token := a.ask("closed", invoices)
	require.NoError(t, a.env.Client().CancelWorkflow(t.Context(), closed.GetID(), ""))
	_ = closed.Get(t.Context(), nil)
	_, open := a.ask("open", invoices)
	_, other := a.ask("other", strings.Replace(invoices, "Book the invoices", "Pay the salaries", 1))
	links := map[string]string{"used": used, "late": late, "fails": fails, "closed": token}
	for name, texts := range map[string][]string{
		"used": {"Already answered", "approve", "Ada"}, "closed": {"No longer open", "the work was stopped"},
		"late": {"No longer open", "Nobody answered by ", "Outcome: rejected."}, "fails": {"Nobody answered by ", "Outcome: the step fails."},
	} {
		for _, given := range []reply{a.open(links[name]), a.post(links[name], url.Values{"option": {"approve"}, "by": {"eve"}})} {
			body := string(given.body)
			for _, text := range append(texts, "<h2>Book the invoices of ", "1\u00a0234\u00a0567,89\u00a0EUR", "197,115.88") {
				require.Contains(t, body, text, name)
			}
			require.NotContains(t, body, "<button", name)
			require.NotContains(t, body, "salaries", "a link shows its own question")
		}
	}
	require.NotContains(t, string(a.open(other).body), "invoices of")

	browser := testenv.NewBrowser(t)
	for name, token := range map[string]string{"open": open, "used": used, "late": late, "closed": token, "mistyped": used[:len(used)-2]} {
		browser.Open(at(token))
		require.Eventually(t, func() bool { // a busy worker responds later
			if strings.Contains(browser.Text(), "no worker is responding") {
				browser.Open(at(token))
			}
			return browser.Eval(fmt.Sprintf(`location.href === %q && !!document.querySelector('h1') && !document.body.innerText.includes('no worker is')`, at(token))) == "true"
		}, patience, 50*time.Millisecond, name)
		for _, width := range []int{320, 768, 1280} {
			for _, scheme := range []string{"light", "dark"} {
				browser.Screen(width, scheme)
				require.Equal(t, "true", browser.Eval(`document.documentElement.scrollWidth <= innerWidth`), "%s is wider than %d", name, width)
				require.Equal(t, "", browser.Eval(lowContrast), "%s at %d, %s", name, width, scheme)
				if folder := os.Getenv("REPRISE_TEST_PICTURES"); folder != "" {
					browser.Picture(filepath.Join(folder, fmt.Sprintf("link-%s-%d-%s.png", name, width, scheme)))
				}
			}
		}
	}
}

// lowContrast lists the texts of a page whose contrast with what is behind them is below 4.5.
const lowContrast = `(() => {
	const parts = text => text.match(/[\d.]+/g).map(Number)
	const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
		.reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0)
	const behind = e => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor); if ((c[3] ?? 1) > 0) return c } return [255, 255, 255] }
	return [...document.querySelectorAll('main *')].filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())).filter(e => {
		const [a, b] = [light(parts(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x)
		return (a + .05) / (b + .05) < 4.5 }).map(e => e.tagName + ': ' + e.textContent.trim()).join('\n')
})()`
