package serve_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// payment asks with values of others in every place that Markdown has.
const payment = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: payment}
workflow:
  - step: ask
    tool: approval
    timeout: 10m
    message: |
      # Payment of {{ amount }}

      Pay **{{ amount }} EUR** to {{ name }}?
      {{ name }} has asked for it in the [bill][b] of {{ amount }}, at https://bills.example/{{ name }}/x and [here]({{ link }}).

      - the first is {{ name }}
      - {{ name }}

      | who | what |
      | --- | --- |
      | {{ name }} | ` + "`{{ amount }}`" + ` |

      ` + "```{{ name }}" + `
      {{ name }}
      ` + "```" + `

      {{ name }}

      Nobody else has agreed to it.

      [b]: https://bills.example/{{ amount }} "{{ name }}"
    options: ["pay {{ amount }}", "reject"]
    form:
      why: {type: text, title: "Why {{ name }} gets it"}
    on_start: {url: "{{ other }}", body: {token: "{{ callback.token }}", complete: "{{ callback.complete }}", page: "{{ callback.page }}"}}
`

// hostileValues are what others may send to make something else of the author's words.
func hostileValues() map[string]string {
	return map[string]string{
		"reference":     "5\n\n[b]: https://evil.example\n[bill]: https://evil.example\n",
		"heading":       "5\n# Refund to Eve\n",
		"underline":     "5\n=====\n",
		"rule":          "5\n\n---\n",
		"comment":       "5 <!--",
		"comment ends":  "5 --> <!-- x",
		"link":          "[Bob](https://evil.example)",
		"link opens":    "[",
		"link closes":   "](https://evil.example)",
		"picture":       "![x](https://evil.example/x.png)",
		"address":       "https://evil.example/pay",
		"address in <>": "<https://evil.example>",
		"mail":          "eve@evil.example",
		"www":           "www.evil.example",
		"strong":        "**", "struck": "~~5~~", "code": "`", "codes": "``` `",
		"fence": "5\n```\nhidden\n", "other fence": "5\n~~~\n", "indented": "5\n\n        code\n",
		"list": "5\n- one\n- two\n1. three\n", "quote": "5\n> said\n", "item": "- x", "number": "1. x", "sharp": "# x",
		"cells":        "5 | 6 | 7\n| --- | --- |\n| a | b |",
		"tag":          `<b onclick="alert(1)">5</b><script>document.title='x'</script><style>*{display:none}</style>`,
		"closing tags": "</bdi></section></main><h1>x</h1>",
		"entity":       "&lt;b&gt; &#42;&#x2a;",
		"backslash":    `5\`,
		"hard break":   "5  \n6\\\n7",
		"direction":    "5\u202e02", "isolate": "\u2066\u2067x", "mark": "\u200f5", "open": "\u202d\u202e\u2067",
		"no width": "5\u200b\u200d\ufeff\u00ad0\u2060", "tags": "5\U000e0041\U000e007f",
		"combining":  strings.Repeat("\u0338\u20e0", 200),
		"separators": "5\u2028\u2029\u0085\v\f6",
		"control":    "5\x1b[2J\x00\x07\r6",
		"lines":      strings.Repeat("\n", 1100),
		"spaces":     "5" + strings.Repeat("\u00a0", 550),
		"blank":      strings.Repeat("\u3164\u2800\u115f", 120),
		"long":       strings.Repeat("lorem ", 190), "long word": strings.Repeat("x", 1200),
		"class": `x fault" class="fault`,
		"empty": "", "script": "javascript:alert(1)", "data": "data:text/html,<script>1</script>",
		"path": "../../evil?x=1&y=2#z", "host": "//evil.example/", "own words": "Bob? Yes, that is paid already. Pay 1",
		"author's marker": "zqvazq zqva zqvbzq \ue000\ufdd0",
	}
}

// TestValuesCannotHideTheAuthorsWords: whatever the values, a person sees the same
// sentences of the author in the same document, and each value as the text that it is.
func TestValuesCannotHideTheAuthorsWords(t *testing.T) {
	t.Parallel()
	browser := testenv.NewBrowser(t)
	a := newAsking(t)
	// Without what stands in values, and where links lead, pages are the same.
	const skeleton = `(() => { const s = document.createElement('div');
		s.append(document.querySelector('h1').cloneNode(true), document.querySelector('.message').cloneNode(true));
		s.querySelectorAll('bdi').forEach(v => { v.textContent = ''; v.removeAttribute('title') });
		s.querySelectorAll('a').forEach(l => { l.setAttribute('href', new URL(l.getAttribute('href')).origin); l.removeAttribute('title');
			if (l.innerText === 'here') l.replaceWith('here') });
		return s.innerHTML.replace('here (<bdi class="value"></bdi>)', 'here') })()`
	shown := func(name, value string) string {
		t.Helper()
		link, amount := value, value
		if len(amount) > 400 { // an option may have 500 bytes
			amount = "5"
		}
		if name == "plain" {
			link = "https://good.example"
		}
		id := strings.NewReplacer(" ", "-", "'", "", "<", "", ">", "").Replace(name)
		_, err := a.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: a.queue + "-" + id, TaskQueue: a.queue},
			protocol.PlaybookWorkflowName, protocol.Input{Name: "payment.yaml", Source: payment, Workload: expression.Of(map[string]any{
				"other": a.other, "amount": amount, "name": value, "link": link,
			})})
		require.NoError(t, err)
		address := a.url + "/v1/approvals/" + a.token()
		browser.Open(address)
		require.Eventually(t, func() bool {
			return browser.Eval(`document.readyState + location.href + document.title.slice(0, 11)`) == "complete"+address+"Payment of "
		}, patience, 10*time.Millisecond, name)
		return browser.Eval(skeleton)
	}
	wanted := shown("plain", "5")
	require.Equal(t, "Payment of 5", browser.Eval(`document.querySelector('h1').innerText`))
	require.Equal(t, "https://bills.example/5 https://bills.example/5/x https://good.example/", browser.Eval(`[...document.links].map(l => l.href).join(' ')`))
	for name, value := range hostileValues() {
		require.Equal(t, wanted, shown(name, value), name)
		require.Equal(t, "true", browser.Eval(`String([...document.links].every(l => l.href.startsWith('https://bills.example/') ||
			l.innerText === 'here' && !l.href.startsWith('javascript') && !l.href.startsWith('data')))`), name)
		require.Equal(t, "0", browser.Eval(`document.querySelectorAll('script, img, b, style:not(head style), [onclick], .message .fault').length`), name)
		require.NotRegexp(t, `[\p{Cc}\p{Cf}\x{2028}\x{2029}\x{3164}\x{2800}\x{115f}]`, strings.NewReplacer("\n", "", "\t", "").Replace(browser.Text()), name) // innerText puts tabs between cells
		last := `(() => { const all = [...document.querySelectorAll('.message p')], last = all[all.length - 1], place = last.getBoundingClientRect();
			return last.innerText + ' ' + (place.height > 0 && place.bottom < 9000 && place.right <= innerWidth) })()`
		require.Equal(t, "Nobody else has agreed to it. true", browser.Eval(last), "%s: a person sees the end of the question", name)
		text := strings.Join(strings.Fields(browser.Text()), " ")
		for _, words := range []string{"Payment of ", "Pay ", " EUR", "to ", "has asked for it in the bill of", "the first is ", "Why ", " gets it"} {
			require.Contains(t, text, strings.TrimSpace(words), fmt.Sprintf("%s: %s", name, text))
		}
	}
}
