package graph

import (
	"context"
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/terminal"
)

// measure is a page that tells what a browser makes of a picture in it: its texts,
// those that are bold, and those that are wider than their boxes or outside of the
// picture.
const measure = `<!doctype html><meta charset=utf-8><body>SVG<pre id=found></pre><script>
const svg = document.querySelector('svg'), found = {texts: [], over: [], bold: [], scripts: svg.querySelectorAll('script').length};
const whole = svg.getBoundingClientRect();
for (const text of svg.querySelectorAll('text')) {
  const own = text.getBoundingClientRect(), rect = text.parentNode.querySelector(':scope > rect:not(.back)');
  const box = rect && text.parentNode.tagName == 'g' && !text.parentNode.hasAttribute('transform') ? rect.getBoundingClientRect() : whole;
  found.texts.push(text.textContent);
  if (+getComputedStyle(text).fontWeight > 500) found.bold.push(text.textContent);
  if (own.left < box.left || own.right > box.right || own.top < box.top - 1 || own.bottom > box.bottom + 1) found.over.push(text.textContent);
}
document.getElementById('found').textContent = JSON.stringify(found);
</script>`

// TestABrowserShowsTheGraph with all texts inside their boxes, and runs nothing.
func TestABrowserShowsTheGraph(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("this test needs a browser: install the package chromium")
	}
	require.NoError(t, err)
	for name, g := range map[string]*Diagram{"run": runGraph(t), "hostile": hostileGraph(), "nested": nestedGraph(t)} {
		page := filepath.Join(t.TempDir(), "page.html")
		svg := regexp.MustCompile(`SVG`).ReplaceAllLiteralString(measure, g.SVG())
		require.NoError(t, os.WriteFile(page, []byte(svg), 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		dom, err := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
			"--no-first-run", "--no-proxy-server", "--user-data-dir="+t.TempDir(), "--dump-dom", "file://"+page).Output()
		require.NoError(t, err)
		told := regexp.MustCompile(`(?s)<pre id="found">(.*?)</pre>`).FindSubmatch(dom)
		require.NotNil(t, told, "%s: %s", name, dom)
		var found struct {
			Texts, Bold, Over []string
			Scripts           int
		}
		require.NoError(t, json.Unmarshal([]byte(html.UnescapeString(string(told[1]))), &found))
		require.Empty(t, found.Over, name)
		require.Zero(t, found.Scripts)
		for _, text := range map[string][]string{
			"run":     {"patients-7x2k (patients): running", "token", "attempt 3 of 5", "next retry at 12:01:04 UTC", "result.again"},
			"hostile": {terminal.OneLine(hostile), "two"},
			"nested":  {"runs outer-7x2k/again#1!1 (more): running", "deep", "itself", "attempt 2 of 5"},
		}[name] {
			require.Contains(t, found.Texts, text)
		}
		if name == "run" {
			require.Contains(t, found.Bold, "token", "the name of a step")
			require.NotContains(t, found.Bold, "attempt 3 of 5")
		}
	}
}
