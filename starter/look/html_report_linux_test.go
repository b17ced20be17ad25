package look

import (
	"bytes"
	"cmp"
	nethttp "net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/report"
	"reprise/internal/test/samples"
	"reprise/internal/test/testenv"
)

// chromium is the browser of these tests; they are skipped where there is none, but
// not in CI.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "/usr/bin/chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "" {
		t.Skip("this test needs a browser: install the package chromium")
	}
	require.FailNow(t, "CI needs a browser: install the package chromium")
	return ""
}

// site serves a page, and is the proxy through which its browser reaches everything.
type site struct {
	page  string
	host  string // "" is report.example
	mu    sync.Mutex
	asked []string
}

func (s *site) ServeHTTP(w nethttp.ResponseWriter, r *nethttp.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	host, _, _ := strings.Cut(r.Host, ":")
	if !strings.HasSuffix(host, ".google.com") && !strings.HasSuffix(host, ".googleapis.com") { // what the browser asks itself
		s.asked = append(s.asked, r.Method+" "+r.Host+r.URL.Path)
	}
	if host != cmp.Or(s.host, "report.example") {
		nethttp.Error(w, "outside", nethttp.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(s.page))
}

// opened opens a page in a browser: what it had then, what it said on its console, and
// what it asked for.
func opened(t *testing.T, page string, flags ...string) (dom, console string, asked []string) {
	t.Helper()
	served := &site{page: page}
	server := httptest.NewServer(served)
	defer server.Close()
	flags = append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
		"--disable-features=OptimizationHints,MediaRouter,Translate", "--no-pings", "--hide-scrollbars",
		"--enable-logging=stderr", "--v=0", "--user-data-dir=" + t.TempDir(), "--proxy-server=" + server.URL, "--dump-dom",
	}, append(flags, "http://report.example/")...)
	window := exec.Command(chromium(t), flags...)
	var out, said bytes.Buffer
	window.Stdout, window.Stderr = &out, &said
	window.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, window.Start())
	end := func() { _ = syscall.Kill(-window.Process.Pid, syscall.SIGKILL) }
	t.Cleanup(end)
	require.NoError(t, testenv.WaitResult(t, window.Wait, "the end of the browser"), said.String())
	end() // what it left
	for line := range strings.Lines(said.String()) {
		if strings.Contains(line, "CONSOLE") {
			console += line
		}
	}
	served.mu.Lock()
	defer served.mu.Unlock()
	return out.String(), console, served.asked
}

// TestAReportInABrowser: it reads as it was written, asks for nothing else and has
// nothing to complain of.
func TestAReportInABrowser(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]report.Document{
		"small": reportOf(t, 120, "HTTP 404 from GET http://api/patients/40"), "hostile": hostileReport(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := rendered(t, doc)
			dom, console, asked := opened(t, page)
			require.Equal(t, samples.VisibleText(t, page), samples.VisibleText(t, dom))
			require.Empty(t, console)
			require.Equal(t, []string{"GET report.example/"}, asked)
			require.NotContains(t, dom, "<script")
			require.NotContains(t, dom, "<img")
		})
	}
}

// TestAReportFitsAPhone: nothing is wider than the window.
func TestAReportFitsAPhone(t *testing.T) {
	t.Parallel()
	browser := testenv.NewBrowser(t)
	for _, doc := range []report.Document{reportOf(t, 120, "HTTP 404 from GET http://api/patients/40"), hostileReport(t)} {
		doc.Input, doc.Graph = strings.Repeat("x", 300), `<svg xmlns="http://www.w3.org/2000/svg" width="2000" height="20"></svg>`
		server := httptest.NewServer(&site{page: rendered(t, doc), host: "127.0.0.1"})
		browser.Open(server.URL)
		require.Eventually(t, func() bool {
			return browser.Eval(`document.readyState + (document.querySelector('footer, .tiles') !== null)`) == "completetrue"
		},
			patience, 20*time.Millisecond)
		for _, width := range []int{320, 390, 1280} {
			browser.Screen(width, "dark")
			require.Equal(t, "true", browser.Eval(`document.documentElement.scrollWidth <= innerWidth`), "at %d", width)
		}
		server.Close()
	}
}

// TestABrowserThatFails: the test above would see it.
func TestABrowserThatFails(t *testing.T) {
	t.Parallel()
	_, console, asked := opened(t, `<!doctype html><script>fail()</script><img src="http://evil.example/x">`)
	require.Contains(t, console, "fail is not defined")
	require.Contains(t, asked, "GET evil.example/x")
}

// TestPicturesOfAReport makes screenshots for eyes, where REPRISE_TEST_PICTURES says.
func TestPicturesOfAReport(t *testing.T) {
	folder := os.Getenv("REPRISE_TEST_PICTURES")
	if folder == "" {
		t.Skip("REPRISE_TEST_PICTURES names no folder for them")
	}
	for name, doc := range map[string]report.Document{
		"small": reportOf(t, 30, "HTTP 404 from GET http://api/patients/40"), "large": reportOf(t, 100_000, "HTTP 404"), "hostile": hostileReport(t),
	} {
		for theme, flag := range map[string]string{"light": "--blink-settings=preferredColorScheme=1", "dark": "--blink-settings=preferredColorScheme=0"} {
			opened(t, rendered(t, doc), flag, "--window-size=1280,2600", "--screenshot="+filepath.Join(folder, name+"_"+theme+".png"))
		}
	}
}
