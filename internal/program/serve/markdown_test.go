package serve_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/serve"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// asksWith is a message of pieces by turns of the author and of data.
func asksWith(pieces ...string) *playbook.Approval {
	asks := &playbook.Approval{}
	for i, piece := range pieces {
		from := len(asks.Message)
		asks.Message += piece
		if i%2 == 1 {
			asks.Data = append(asks.Data, expression.Range{From: from, To: len(asks.Message)})
		}
	}
	return asks
}

func TestMessageShowsMarkdownOfTheAuthorAlone(t *testing.T) {
	t.Parallel()
	value := func(text string) string { return `<bdi class="value">` + text + "</bdi>" }
	link := func(to, text string) string {
		return `<a href="` + to + `" rel="noopener noreferrer nofollow">` + text + "</a>"
	}
	for _, c := range []struct {
		asks *playbook.Approval
		want string
	}{
		{asksWith("Pay **", "5*", "** EUR?"), "<p>Pay <strong>" + value("5*") + "</strong> EUR?</p>"},
		{asksWith("", "# 5", ""), "<p>" + value("# 5") + "</p>"},
		{asksWith("`", "`5", "`"), "<p><code>" + value("`5") + "</code></p>"},
		{asksWith("zqv zqvaaaa ", "5"), "<p>zqv zqvaaaa " + value("5") + "</p>"},
		{asksWith("", "1 234,50 EUR", ""), "<p>" + value("1\u00a0234,50\u00a0EUR") + "</p>"}, // a figure stays in one line
		{asksWith("[here](", "https://a.example/?b&c", ")."), "<p>" + link("https://a.example/?b&amp;c", "here") + " (" + value("https://a.example/?b&amp;c") + ").</p>"},
		{asksWith("[here](", "javascript:alert(1)", ")."), "<p>here.</p>"},
		{asksWith("[here](", "https://a.example/\u202e", ")."), "<p>here.</p>"},
		{asksWith("https://a.example/", "b?c=1&d/../", "/e"), "<p>" + link("https://a.example/b%3Fc%3D1%26d%2F..%2F/e", "https://a.example/"+value("b?c=1&amp;d/../")+"/e") + "</p>"},
		{asksWith("https://", "evil.org/", ".example/"), "<p>https://" + value("evil.org/") + ".example/</p>"},
		{asksWith("[x](https://", "evil.org", "/a)"), "<p>" + link("https://evil.org/a", "x") + " (" + value("https://evil.org/a") + ")</p>"},
		{asksWith("eve@", "b", ".example"), "<p>" + link("mailto:eve@b.example", "eve@"+value("b")+".example") + "</p>"},
		{asksWith("![", "a", "](https://a.example/b.png)"), "<p>" + value("a") + "</p>"},
		{&playbook.Approval{Message: "**5**", Data: []expression.Range{{From: 3, To: 9}}}, "<p>" + value("**5**") + "</p>"},
	} {
		got, err := serve.Message(c.asks)
		require.NoError(t, err)
		require.Equal(t, c.want+"\n", got, "%q", c.asks.Message)
	}
}

// TestCellsHaveTheLabelsOfTheirColumns: narrow screens show the header beside each cell. A value in a header stays a text, and one
// that looks like a stand-in for another value puts no markup into an attribute.
func TestCellsHaveTheLabelsOfTheirColumns(t *testing.T) {
	t.Parallel()
	for label, want := range map[string][]string{
		"total":              {`data-label="total in EUR"`, `data-label="due"`},
		`"><img src=x a="`:   {`data-label="&quot;&gt;&lt;img src=x a=&quot; in EUR"`, `data-label="due"`},
		"zqvaaab onclick=x ": {`<td class="short">5</td>`, `data-label="due"`},
	} {
		got, err := serve.Message(asksWith("| ", label, " in EUR | due | other |\n|---|---|---|\n| 5 | ", "now", " |\n"))
		require.NoError(t, err)
		_, rows, _ := strings.Cut(got, "<tbody>")
		for _, part := range want {
			require.Contains(t, rows, part)
		}
		require.NotRegexp(t, `="[^"]*<`, got, "no markup is in an attribute")
	}
}

// FuzzMessageValues: no value changes anything of the document but the text in its place.
func FuzzMessageValues(f *testing.F) {
	for _, seed := range []string{"5", "[b]: https://evil.example\n", "\n\n# x\n", "<!--", "```\n", "a | b", "](https://evil.example)", "</bdi>", "&amp;", "zqvaaaa", "\\"} {
		f.Add(seed, seed)
	}
	data := regexp.MustCompile(`(?s)<bdi class="value">.*?</bdi>`)
	links := regexp.MustCompile(`href="https://bills\.example/[^"<>]*/x"`)
	bare := func(t *testing.T, one, two string) string {
		t.Helper()
		page, err := serve.Message(asksWith("# Pay ", one, "\n\nto **", two, "**, see [it](https://bills.example/", one, "/x) and https://bills.example/", two,
			"/x\n\n- ", one, "\n\n| a |\n| - |\n| ", two, " |\n\n```", one, "\n", two, "\n```\n", one, "\n\n`", two, "` \\", one, " <b>", two, "</b>\nThe end."))
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(strings.TrimSpace(page), "The end.</p>"), page)
		return links.ReplaceAllString(data.ReplaceAllString(page, "_"), `href=""`)
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		require.Equal(t, bare(t, "5", "6"), bare(t, one, two))
	})
}
