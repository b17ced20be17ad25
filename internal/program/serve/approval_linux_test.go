package serve_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

// TestApprovalInABrowser: a person reads the page, fills it in and sees the answer. A
// page elsewhere that posts the form, or frames the page, comes to nothing.
func TestApprovalInABrowser(t *testing.T) {
	t.Parallel()
	browser := testenv.NewBrowser(t)
	a := newAsking(t)
	run, token := a.ask("browser", approval)
	address := a.url + "/v1/approvals/" + token
	until := func(expression string) {
		t.Helper()
		require.Eventually(t, func() bool { return browser.Eval(expression) == "true" }, patience, 50*time.Millisecond, "%s: %s", expression, browser.Text())
	}

	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`<!doctype html><form method="post" action="` + address + `"><input name="by" value="eve">
			<input name="form.ticket" value="x"><input name="option" value="approve"></form><script>document.forms[0].submit()</script>`))
	}))
	t.Cleanup(hostile.Close)
	browser.Open(hostile.URL)
	until(`document.body.innerText.includes('a page on another site')`)

	browser.Open(address)
	require.Eventually(t, func() bool {
		if strings.Contains(browser.Text(), "no worker is responding") { // it is busy with other tests: try again
			browser.Open(address)
		}
		return browser.Eval(`document.title === 'Load 42 rows? – Reprise'`) == "true"
	}, patience, time.Second, "no approval is shown")
	require.Equal(t, "0", browser.Eval(`document.querySelectorAll('script, img, b, [onclick], [onerror], [style]').length`))
	require.Equal(t, "https://log.example/1", browser.Eval(`[...document.links].map(l => l.href).join(' ')`))
	require.Equal(t, "700", browser.Eval(`getComputedStyle(document.querySelector('.must').parentElement).fontWeight.replace('600', '700')`), "the style counts")
	require.Equal(t, "0", browser.Eval(`[...document.querySelectorAll('input, select, textarea')].filter(i => i.labels.length !== 1).length`))
	require.Equal(t, "H1", browser.Eval(`document.querySelectorAll('h1').length === 1 && document.querySelector('h1, h2, h3').tagName`))
	require.Equal(t, `Ticket <img src=x onerror="document.title='hacked'"> (required)`, browser.Eval(`document.forms[0].elements['form.ticket'].labels[0].innerText`))
	require.Equal(t, `later "><script>document.title='hacked'</script>`, browser.Eval(`document.querySelectorAll('button')[2].value`))
	if folder := os.Getenv("REPRISE_TEST_PICTURES"); folder != "" {
		browser.Picture(filepath.Join(folder, "approval.png"))
	}
	narrow := `(() => { const f = document.body; f.style.width = '360px'; const wide = f.scrollWidth; f.style.width = ''; return wide <= 360 })()`
	require.Equal(t, "true", browser.Eval(narrow))

	browser.Eval(`document.querySelector('button[value=approve]').click()`)
	require.Equal(t, "false", browser.Eval(`document.forms[0].checkValidity()`), "what is required is missing")
	browser.Eval(`(() => { const e = document.forms[0].elements; e['form.ticket'].value = 'T <1>'; e['form.rows'].value = '7'; e['form.share'].value = '0.5';
		e['form.where'].value = 'prod"\'<>&'; e.by.value = 'Ada'; e.comment.value = 'fine'; e['form.sure'].checked = false })()`)
	browser.Eval(`document.querySelector('button[value=approve]').click()`)
	until(`document.title === 'Already answered – Reprise'`)
	require.Equal(t, address, browser.Eval(`location.href`))
	require.Contains(t, browser.Text(), "Ada")
	result, ok := a.ends(run).Result.Data.(map[string]any)
	require.True(t, ok)
	delete(result, "at")
	require.Equal(t, map[string]any{
		"option": "approve", "by": "Ada", "comment": "fine", "ticket": "T <1>", "rows": 7, "share": 0.5, "sure": false, "where": `prod"'<>&`,
	}, result)
}
