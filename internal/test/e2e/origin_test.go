package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// elsewhere is a host that pages lead to. It keeps all that it is sent.
type elsewhere struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newElsewhere(t *testing.T) *elsewhere {
	t.Helper()
	h := &elsewhere{}
	h.Server = httptest.NewUnstartedServer(h)
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	require.NoError(t, err)
	require.NoError(t, h.Listener.Close())
	h.Listener = listener
	h.Start()
	t.Cleanup(h.Close)
	return h
}

func (h *elsewhere) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dump, _ := httputil.DumpRequest(r, true)
	h.mu.Lock()
	h.seen = append(h.seen, string(dump))
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"rows": [9]}`)
}

func (h *elsewhere) received() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.seen, "\n")
}

// TestCredentialsDoNotFollowPages: what names the next page is what the other
// side answered, and it may name any host. The call knows where it began also
// behind a wait, in a loop's batches and where a page has been written.
func TestCredentialsDoNotFollowPages(t *testing.T) {
	t.Parallel()
	const canary = "canary-t0ken"
	for name, steps := range map[string]string{
		"url": `
  - step: fetch
    tool: http
    auth: %s
    url: "{{ good }}/rows"
    retry:
      - when: "{{ response.next is defined }}"
        then: {next_call: {url: "{{ response.next }}"}, collect: {path: rows}}
`,
		"link": `
  - step: fetch
    tool: http
    auth: %s
    url: "{{ good }}/rows"
    retry:
      - when: "{{ error.status == 503 }}"
        then: {max_attempts: 2, delay: 0.1}
      - when: "{{ this.meta.links.next is defined }}"
        then: {next_call: {url: "{{ this.meta.links.next }}"}, collect: {path: rows}, per_page: {sink: {tool: file, path: rows.jsonl}}}
`,
		"loop": `
  - step: fetch
    tool: http
    loop: {in: [1, 2, 3], iterator: n, batch: 3}
    auth: %s
    url: "{{ good }}/rows"
    params: {n: "{{ n }}"}
    retry:
      - when: "{{ response.next is defined }}"
        then: {next_call: {url: "{{ response.next }}"}, collect: {path: rows}}
`,
	} {
		for _, auth := range []string{"bearer", "header", "basic", "named"} {
			t.Run(name+" "+auth, func(t *testing.T) {
				t.Parallel()
				evil := newElsewhere(t)
				good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("Link", "<"+evil.URL+`/rows>; rel="next"`)
					fmt.Fprintf(w, `{"rows": [1], "next": "%s/rows"}`, evil.URL)
				}))
				t.Cleanup(good.Close)
				w := newWorld(t)
				w.secrets = append(w.secrets, canary)
				w.connected["bearer"] = "bearer:" + canary
				w.connected["header"] = "header:X-Api-Key: " + canary
				w.connected["basic"] = strings.Replace(good.URL, "http://", "http://ana:"+canary+"@", 1)
				w.connected["named"] = "bearer:" + canary + "@" + good.URL
				w.work()
				result, err := w.run(book(fmt.Sprintf(steps, auth)+`
output: "{{ fetch }}"
`), map[string]any{"good": good.URL})
				require.NoError(t, err)
				require.EqualValues(t, "failed", result.Status)
				require.Empty(t, evil.received())
				message := fmt.Sprint(result.Error.Message, result.Steps)
				if result.Error.Body.Data != nil {
					message += fmt.Sprint(result.Error.Body.Data)
				}
				require.Contains(t, message, good.URL)
				require.Contains(t, message, evil.URL)
				require.Contains(t, message, "remove auth")
			})
		}
	}
}

// TestPagesOfAnotherHostComeWithoutAuth: what is public may be anywhere.
func TestPagesOfAnotherHostComeWithoutAuth(t *testing.T) {
	t.Parallel()
	other := newElsewhere(t)
	w := newWorking(t)
	require.Equal(t, []any{9}, w.completes(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/echo"
    retry:
      - when: "{{ response.rows is not defined }}"
        then: {next_call: {url: "{{ other }}/rows"}, collect: {path: rows, optional: true}}
output: "{{ fetch }}"
`), map[string]any{"other": other.URL}))
	require.NotEmpty(t, other.received())
}
