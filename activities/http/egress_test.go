package http_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/base/egress"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// doors are listeners of this machine at one port that count who connects.
type doors struct {
	port     string
	accepted atomic.Int64
}

// openDoors listens at 127.0.0.1 and ::1.
func openDoors(t *testing.T) *doors {
	t.Helper()
	d := &doors{}
	first, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, d.port, _ = net.SplitHostPort(first.Addr().String())
	second, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "[::1]:"+d.port)
	require.NoError(t, err)
	for _, listener := range []net.Listener{first, second} {
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "within") }), ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				d.accepted.Add(1)
			}
		}}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { _ = server.Close() })
	}
	return d
}

// rules reads the rules of an operator.
func rules(t *testing.T, value map[string]any, usual *egress.Policy) *egress.Policy {
	t.Helper()
	policy, err := egress.Parse(value, usual)
	require.NoError(t, err)
	return policy
}

// innerHosts are hosts in URLs that lead to this machine, to private networks, or to metadata of clouds. Those with true reach a
// listener of the test where nothing forbids it.
var innerHosts = map[string]bool{
	// RFC 3986 and what inet_aton and resolvers read
	"127.0.0.1": true, "127.0.0.1.": false, "127.1": false, "127.0.1": false, "2130706433": false, "0x7f000001": false, "0x7F.0.0.1": false, "0177.0.0.1": false,
	"017700000001": false, "0x7f.1": false, "127.0x1": false, "00127.0.0.1": false, "127.000.000.001": false, "0": false, "0.0.0.0": true, "0x0": false, "127.255.255.254": false,
	"１２７.0.0.1": true, "127。0。0。1": true, "①②⑦.0.0.1": true, "localhost": true, "LOCALHOST": true, "localhost.": false,
	// IPv6
	"[::1]": true, "[0:0:0:0:0:0:0:1]": true, "[0000::0001]": true, "[::]": true, "[::ffff:127.0.0.1]": true, "[::ffff:7f00:1]": true, "[0:0:0:0:0:ffff:7f00:0001]": true,
	"[::127.0.0.1]": false, "[::ffff:0:127.0.0.1]": false, "[64:ff9b::127.0.0.1]": false, "[64:ff9b::7f00:1]": false, "[64:ff9b::a9fe:a9fe]": false, "[64:ff9b::10.0.0.1]": false,
	"[64:ff9b:1::7f00:1]": false, "[64:ff9b:1:7f00:0:100::]": false, "[2002:7f00:1::]": false, "[2002:a9fe:a9fe::1]": false, "[2002:0a00:0001::]": false, "[2001:0:7f00:1::]": false,
	"[2001:0:808:808::80ff:fffe]": false, "[2a00::5efe:127.0.0.1]": false, "[2a00::200:5efe:10.0.0.1]": false, "[fe80::1]": false, "[fe80::1%25lo]": false, "[fe80::a9fe:a9fe%25eth0]": false,
	"[::1%25lo]": false, "[fc00::1]": false, "[fd12:3456:789a::1]": false, "[fec0::1]": false, "[ff02::1]": false, "[fd00:ec2::254]": false, "[fd20:ce::254]": false, "[fd00:c1::a9fe:a9fe]": false,
	"[::ffff:169.254.169.254]": false, "[::ffff:10.0.0.1]": false, "[2001:db8::1]": false, "[100::1]": false,
	// Ranges of IPv4, at both ends
	"10.0.0.0": false, "10.255.255.255": false, "172.16.0.1": false, "172.31.255.254": false, "192.168.0.1": false, "192.168.255.255": false, "100.64.0.1": false, "100.127.255.254": false,
	"169.254.169.254": false, "169.254.170.2": false, "169.254.0.1": false, "169.254.255.255": false, "100.100.100.200": false, "168.63.129.16": false, "192.0.0.192": false, "192.0.0.8": false,
	"198.18.0.1": false, "198.19.255.255": false, "224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false, "0.1.2.3": false, "192.0.2.7": false,
	"198.51.100.7": false, "203.0.113.7": false, "2852039166": false, "0xa9fea9fe": false, "0251.0376.0251.0376": false, "0xA9.0xFE.0xA9.0xFE": false, "169.254.43518": false, "10.1": false,
	"127.0.0.01": false, "127.0.00.1": false, "0x7f.0x0.0x0.0x1": false, "0000177.0.0.1": false, "10.0.0.1.": false, "[fe80::ffff:1]": false, "[febf::1]": false, "[::2]": false, "[::ffff:0.0.0.0]": true,
	"user:pass@127.0.0.1": true, "8.8.8.8@127.0.0.1": true, "127.0.0.1%2f": false,
	// Names, as the resolver of the test leads them
	"loop.test": true, "LOOP.Test": true, "loop.test.": true, "loop6.test": true, "mapped.test": true, "both.test": true, "private.test": false, "metadata.test": false, "nat64.test": false,
	"nat64-metadata.test": false, "sixtofour.test": false, "teredo.test": false, "ula.test": false, "link.test": false, "many.test": false, "127.0.0.1.nip.test": true, "xn--lp-fka.test": true,
	"lüp.test": false, "any.test": true, "cgnat.test": false,
}

// innerNames are the addresses of names.
var innerNames = map[string][]string{
	"loop.test": {"127.0.0.1"}, "loop6.test": {"::1"}, "mapped.test": {"::ffff:127.0.0.1"}, "both.test": {"::1", "127.0.0.1"}, "private.test": {"10.1.2.3"},
	"metadata.test": {"169.254.169.254"}, "nat64.test": {"64:ff9b::7f00:1"}, "nat64-metadata.test": {"64:ff9b::a9fe:a9fe"}, "sixtofour.test": {"2002:7f00:1::1"},
	"teredo.test": {"2001:0:7f00:1::1"}, "ula.test": {"fd00::7"}, "link.test": {"fe80::7"}, "many.test": {"10.0.0.1", "10.0.0.2", "192.168.1.1", "fd00::1"},
	"127.0.0.1.nip.test": {"127.0.0.1"}, "xn--lp-fka.test": {"127.0.0.1"}, "any.test": {"0.0.0.0"}, "cgnat.test": {"100.64.3.2"}, "xn--lp-xka.test": {"172.20.0.1"},
}

func innerResolver(t *testing.T) *net.Resolver {
	t.Helper()
	return testenv.NewNameServer(t, func(name string, _ int) []string { return innerNames[strings.ToLower(name)] })
}

// requireDenied checks the error of an attempt whose address is not allowed.
func requireDenied(t *testing.T, err error, what string) interpreter.ErrorObject {
	t.Helper()
	require.Error(t, err, what)
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, []any{interpreter.KindConnection, interpreter.ClassFinal, "egress_denied"}, []any{object.Kind, object.Class, object.Type}, "%s: %s", what, object.Message)
	require.Contains(t, object.Message, "the worker may not connect to ", what)
	return object
}

// TestEgressOfSpellings: whatever an address of this machine, a private network or a cloud's metadata is called, nobody there is
// connected to. The same requests reach the listeners where the rules allow them, so the test would notice.
func TestEgressOfSpellings(t *testing.T) {
	t.Parallel()
	d := openDoors(t)
	remote, open := egress.RemotePolicy(), rules(t, map[string]any{"allow": []any{"0.0.0.0/0", "::/0"}}, egress.RemotePolicy())
	remote.Resolver, open.Resolver = innerResolver(t), innerResolver(t)
	strict, free := activities.NewCatalogue(activities.Resources{Egress: remote}), activities.NewCatalogue(activities.Resources{Egress: open})
	t.Cleanup(func() { require.NoError(t, strict.Close()); require.NoError(t, free.Close()) })
	require.GreaterOrEqual(t, len(innerHosts), 120)
	for host, reaches := range innerHosts {
		url := "http://" + host + ":" + d.port + "/"
		_, err := tooltest.CallHTTP(t, strict, tooltest.Input(map[string]any{"url": url})(t))
		require.Error(t, err, url)
		if object := tooltest.ErrorObject(t, err); object.Kind == interpreter.KindConnection && object.Type != "dns" {
			requireDenied(t, err, url)
		}
		require.Zero(t, d.accepted.Load(), url)
		if reaches {
			requireDenied(t, err, url)
			result, err := tooltest.CallHTTP(t, free, tooltest.Input(map[string]any{"url": url})(t))
			require.NoError(t, err, url)
			require.Equal(t, "within", result.Data.Data, url)
			require.Positive(t, d.accepted.Swap(0), url)
			require.NoError(t, free.Close()) // idle connections
		}
	}
}

// TestEgressOfRedirects: a server that may be reached leads to those that may not.
func TestEgressOfRedirects(t *testing.T) {
	t.Parallel()
	d := openDoors(t)
	outer := tooltest.NewRecordingServer(t, "127.0.0.2", func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Query().Get("status"))
		w.Header()["Location"] = []string{r.URL.Query().Get("to")}
		w.WriteHeader(status)
	})
	policy := rules(t, map[string]any{"allow": []any{outer.Listener.Addr().String()}}, egress.RemotePolicy())
	policy.Resolver = innerResolver(t)
	c := activities.NewCatalogue(activities.Resources{Egress: policy})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "loop.test", "both.test", "169.254.169.254", "0.0.0.0", "metadata.test"} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			to := "http://" + host + ":" + d.port + "/latest/meta-data/"
			_, err := tooltest.CallHTTP(t, c, tooltest.Input(map[string]any{"url": outer.URL + "/", "params": map[string]any{"to": to, "status": status}})(t))
			requireDenied(t, err, to)
		}
	}
	_, err := tooltest.CallHTTP(t, c, tooltest.Input(map[string]any{"url": outer.URL + "/", "params": map[string]any{"to": "//127.0.0.1:" + d.port, "status": 302}})(t))
	requireDenied(t, err, "a relative address")
	require.Zero(t, d.accepted.Load())
}

// TestEgressOfNamesThatMove: a name leads to an allowed address when it is asked for first, and then to another. A check that
// asks for the name itself would connect to the other.
func TestEgressOfNamesThatMove(t *testing.T) {
	t.Parallel()
	d := openDoors(t)
	outer, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:"+d.port)
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		fmt.Fprint(w, "outside")
	})}
	go func() { _ = server.Serve(outer) }()
	t.Cleanup(func() { _ = server.Close() })
	policy := rules(t, map[string]any{"allow": []any{"127.0.0.2"}}, egress.RemotePolicy())
	policy.Resolver = testenv.NewNameServer(t, func(_ string, n int) []string {
		if n == 1 {
			return []string{"127.0.0.2"}
		}
		return []string{"127.0.0.1"}
	})
	c := activities.NewCatalogue(activities.Resources{Egress: policy})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	for i := range 20 {
		url := fmt.Sprintf("http://moves-%d.test:%s/", i, d.port)
		result, err := tooltest.CallHTTP(t, c, tooltest.Input(map[string]any{"url": url})(t))
		require.NoError(t, err)
		require.Equal(t, "outside", result.Data.Data)
		_, err = tooltest.CallHTTP(t, c, tooltest.Input(map[string]any{"url": url})(t))
		object := requireDenied(t, err, url)
		require.Contains(t, object.Message, fmt.Sprintf(`moves-%d.test:%s (127.0.0.1), an address of this machine or a private network; to permit it, add "moves-%d.test:%s" to allow in the worker's egress file (--egress, REPRISE_EGRESS)`, i, d.port, i, d.port))
	}
	require.Zero(t, d.accepted.Load())
}

// TestEgressOfConnections: the hosts that a connection names are reached by attempts that use it, and by no others, also where a
// connection of TCP is there.
func TestEgressOfConnections(t *testing.T) {
	t.Parallel()
	d := openDoors(t)
	at := "127.0.0.1:" + d.port
	login := tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token": "t0ken", "token": "t0ken", "token_type": "bearer", "expires_in": 3600}`)
	})
	connections := activities.Connections{
		"named": "bearer:" + canary + "@http://" + at, "hostless": "bearer:" + canary, "metadata": "bearer:" + canary + "@http://169.254.169.254",
		"client":  fmt.Sprintf(`{"oauth2": {"token_url": "%s/token", "client_id": "x", "client_secret": "y", "host": "http://%s"}}`, login.URL, at),
		"session": fmt.Sprintf(`{"session": {"login": {"url": "%s/login"}, "token": "{{ response.token }}", "send": {"header": "X-S"}}, "host": "http://%s"}`, login.URL, at),
		"away":    `{"oauth2": {"token_url": "http://169.254.169.254/token", "client_id": "x", "client_secret": "y", "host": "http://` + at + `"}}`,
		"logs_in": `{"session": {"login": {"url": "http://169.254.169.254/login"}, "token": "{{ response.token }}", "send": {"header": "X-S"}}, "host": "http://` + at + `"}`,
	}
	c := activities.NewCatalogue(activities.Resources{Egress: egress.RemotePolicy(), Connections: connections})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	call := func(auth, url string) error {
		in := tooltest.Input(map[string]any{"url": url})(t)
		in.Auth = auth
		_, err := tooltest.CallHTTP(t, c, in)
		return err
	}
	for _, auth := range []string{"named", "client", "session"} {
		require.NoError(t, call(auth, "/"), auth)
	}
	require.Len(t, login.ReceivedRequests(), 2)
	require.Positive(t, d.accepted.Swap(0))
	requireDenied(t, call("", "http://"+at), "no connection")
	requireDenied(t, call("hostless", "http://"+at), "a connection without a host")
	object := requireDenied(t, call("metadata", "/"), "metadata")
	require.Contains(t, object.Message, `add "169.254.169.254:80" to allow`)
	require.NotContains(t, object.Message, "in a connection")
	object = requireDenied(t, call("away", "/"), "a token endpoint")
	require.Contains(t, object.Message, `connection "away": the token endpoint at http://169.254.169.254: the worker may not connect to 169.254.169.254:80`)
	requireDenied(t, call("logs_in", "/"), "a login")
	require.Zero(t, d.accepted.Load())

	denied := activities.NewCatalogue(activities.Resources{Egress: rules(t, map[string]any{"deny": []any{at}}, egress.LocalPolicy()), Connections: connections})
	t.Cleanup(func() { require.NoError(t, denied.Close()) })
	in := tooltest.Input(map[string]any{"url": "/"})(t)
	in.Auth = "named"
	_, err := tooltest.CallHTTP(t, denied, in)
	require.Contains(t, requireDenied(t, err, "deny").Message, fmt.Sprintf("which %q under deny in its egress file excludes", at))
	require.Zero(t, d.accepted.Load())
}

// TestEgressOfOtherTools: webhooks and sinks send as http does.
func TestEgressOfOtherTools(t *testing.T) {
	t.Parallel()
	d := openDoors(t)
	c := activities.NewCatalogue(activities.Resources{Egress: egress.RemotePolicy()})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	fields := map[string]any{"url": "http://127.0.0.1:" + d.port, "method": "POST"}
	in := tooltest.Input(map[string]any{"on_start": fields})(t)
	in.Sends = "on_start"
	_, err := tooltest.Call(t, c, "webhook", "webhook", in)
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, []any{interpreter.KindWebhookFailure, interpreter.ClassFinal, "egress_denied"}, []any{object.Kind, object.Class, object.Type})
	in = tooltest.Input(fields)(t)
	in.Result = tooltest.Value("a row")
	_, err = tooltest.Call(t, c, "http.write", "http", in)
	requireDenied(t, err, "a sink")
	require.Zero(t, d.accepted.Load())
}

// egressChild is the URLs that a child process requests.
const egressChild = "REPRISE_TEST_EGRESS_URLS"

// TestRequestsOfAnEgressChild is a process of its own, as the environment is read once.
func TestRequestsOfAnEgressChild(t *testing.T) {
	var urls []string
	if json.Unmarshal([]byte(os.Getenv(egressChild)), &urls) != nil {
		t.Skip("a part of TestEgressThroughAProxy")
	}
	policy := rules(t, map[string]any{"allow": []any{"api.internal:443", "api.internal:80", "*.ours.test", "10.9.0.0/16"}, "deny": []any{"no.ours.test", "8.8.4.4"}}, egress.RemotePolicy())
	policy.Resolver = innerResolver(t)
	c := activities.NewCatalogue(activities.Resources{Egress: policy, Connections: activities.Connections{"named": "bearer:" + canary + "@http://named.internal"}})
	for _, url := range urls {
		in := tooltest.Input(map[string]any{"url": url})(t)
		in.Auth = map[bool]string{true: "named"}[strings.HasPrefix(url, "/")]
		result, err := tooltest.CallHTTP(t, c, in)
		told := "reached"
		if err != nil {
			object := tooltest.ErrorObject(t, err)
			told = fmt.Sprint(object.Kind, " ", object.Class, " ", object.Type)
		} else {
			require.Equal(t, "by proxy", result.Data.Data)
		}
		fmt.Printf("TOLD %s\n", told)
	}
}

// TestEgressThroughAProxy: the proxy resolves names, so they are checked as they are; addresses in every spelling that a proxy may
// read. The proxy itself is the operator's, and reached wherever it is.
func TestEgressThroughAProxy(t *testing.T) {
	t.Parallel()
	proxy := tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		fmt.Fprint(w, "by proxy")
	})
	direct := openDoors(t)
	const denied, reached = "connection final egress_denied", "reached"
	cases := [][2]string{{"http://no-proxy.test:" + direct.port, denied}, {proxy.URL, denied}}
	for _, host := range []string{
		"10.0.0.1", "10.1", "0x0a000001", "167772161", "012.0.0.1", "169.254.169.254", "2852039166", "0xa9fea9fe", "[fd00::1]", "[::ffff:10.0.0.1]", "[64:ff9b::a9fe:a9fe]",
		"metadata.google.internal", "METADATA.google.internal.", "metadata", "instance-data", "postgres", "printer.local", "db.internal", "x.localhost", "router.lan", "no.ours.test", "8.8.4.4", "134743044",
	} {
		cases = append(cases, [2]string{"http://" + host + "/", denied}, [2]string{"https://" + host + "/", denied})
	}
	allowed := []string{"api.internal", "a.ours.test", "b.a.OURS.test.", "api.example.com", "10.9.1.2", "8.8.8.8", "[2606:4700::1111]"}
	for _, host := range allowed {
		cases = append(cases, [2]string{"http://" + host + "/", reached})
	}
	cases = append(cases, [2]string{"/by-connection", reached}, [2]string{"http://api.internal:8080/", denied}, [2]string{"http://ours.test.evil.internal/", denied})
	urls := make([]string, len(cases))
	for i, each := range cases {
		urls[i] = each[0]
	}
	list, err := json.Marshal(urls)
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRequestsOfAnEgressChild$")
	child.Env = []string{egressChild + "=" + string(list), "HTTP_PROXY=" + proxy.URL, "HTTPS_PROXY=" + proxy.URL, "NO_PROXY=no-proxy.test,127.0.0.1"}
	output, err := child.CombinedOutput()
	require.NoError(t, err, "%s", output)
	var told []string
	for line := range strings.Lines(string(output)) {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), "TOLD "); found {
			told = append(told, text)
		}
	}
	require.Len(t, told, len(cases), "%s", output)
	for i, each := range cases {
		if each[0] != "http://no-proxy.test:"+direct.port { // which no server knows
			require.Equal(t, each[1], told[i], each[0])
		}
	}
	require.Len(t, proxy.ReceivedRequests(), len(allowed)+1)
	require.Zero(t, direct.accepted.Load())
}

// TestInnerNamesAreAddresses: each name of the table is one that the test's resolver can answer.
func TestInnerNamesAreAddresses(t *testing.T) {
	t.Parallel()
	for name, addresses := range innerNames {
		for _, each := range addresses {
			_, err := netip.ParseAddr(each)
			require.NoError(t, err, name)
		}
	}
}
