package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	nethttp "net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"reprise/activities"
	"reprise/internal/base/exitcode"
	"reprise/internal/program/host"
	"reprise/internal/program/serve"
	"reprise/internal/test/testenv"
	"reprise/starter/cli"
)

// served is a starter serve in this process.
type served struct {
	t      *testing.T
	args   []string
	url    string
	errs   *testenv.Output
	stop   func()
	client *nethttp.Client
}

var servingURL = regexp.MustCompile(`"msg":"serving","url":"([^"]+)"`)

// start starts the command and waits until it serves.
func (s *served) start() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	s.errs = &testenv.Output{}
	ended := make(chan int, 1)
	go func() {
		ended <- Main(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, s.args...),
			cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: s.errs})
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		require.Equal(s.t, exitcode.OK, testenv.Receive(s.t, ended, "the end of starter serve"), s.errs.String())
	})
	s.t.Cleanup(s.stop)
	require.Eventually(s.t, func() bool {
		found := servingURL.FindStringSubmatch(s.errs.String())
		if found != nil {
			s.url = found[1]
		}
		return found != nil
	}, patience, 10*time.Millisecond, "it does not serve")
}

// post sends a request and gives the status and the answer.
func (s *served) post(path, body string, header map[string]string) (int, map[string]any) {
	s.t.Helper()
	request, err := nethttp.NewRequestWithContext(s.t.Context(), nethttp.MethodPost, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	request.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := s.client.Do(request)
	require.NoError(s.t, err)
	defer func() { _ = response.Body.Close() }()
	var answer map[string]any
	require.NoError(s.t, json.NewDecoder(response.Body).Decode(&answer))
	return response.StatusCode, answer
}

const servedBook = `apiVersion: reprise/v1
kind: Playbook
metadata:
  name: greet
  triggers: [{sender: github, secret: serve_test_hook}]
workload: {name: world}
workflow:
  - step: start
    vars: {greeting: "hello {{ name }}"}
  - step: unused
    when: x
`

// TestServe: a trigger, its run, its result; one run for one key, over several
// servers and a restart; a signed delivery; and what is refused.
func TestServe(t *testing.T) {
	env := testenv.Temporal(t)
	const hook = "a-secret-that-signs-deliveries"
	t.Setenv("REPRISE_AUTH_SERVE_TEST_HOOK", hook)
	queue, folder := env.NewTaskQueue(), t.TempDir()
	good := strings.Split(servedBook, "  - step: unused")[0] + "output: \"{{ trigger is defined ? trigger.body.ref : vars.greeting }}\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "greet.yaml"), []byte(good), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "bad.yaml"), []byte(servedBook), 0o600))
	token, line, err := serve.NewToken("ci", nil, serve.RoleNone)
	require.NoError(t, err)
	tokens := filepath.Join(t.TempDir(), "callers.yaml")
	require.NoError(t, os.WriteFile(tokens, []byte(line), 0o600))
	catalogue := activities.NewCatalogue(activities.Resources{})
	worker := host.NewWorker(env.Client(), catalogue, host.Options{TaskQueue: queue, StopTimeout: time.Second})
	require.NoError(t, worker.Start())
	t.Cleanup(func() { worker.Stop(); require.NoError(t, catalogue.Close()) })

	server := &served{t: t, client: nethttp.DefaultClient, args: []string{
		"--address", env.Address, "--namespace", env.Namespace, "--task-queue", queue, "--playbooks", folder, "--tokens", tokens, "--allow-invalid",
	}}
	server.start()
	id := func(key string) map[string]string {
		return map[string]string{"Authorization": "Bearer " + token, "Idempotency-Key": queue + "-" + key}
	}
	const runs = "/v1/playbooks/greet/runs"
	status, answer := server.post(runs+"?wait=60s", `{"name": "Ada", "nmae": 1}`, id("one"))
	require.Equal(t, nethttp.StatusOK, status, answer)
	require.Equal(t, "completed", answer["status"])
	require.Equal(t, "hello Ada", answer["result"])
	require.Contains(t, answer["warnings"].([]any)[0], `no key "nmae"`)

	const callers = 50
	other := &served{t: t, client: nethttp.DefaultClient, args: server.args}
	other.start()
	ids := make([]any, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			_, answer := []*served{server, other}[i%2].post(runs+"?wait=60s", `{}`, id("fifty"))
			ids[i] = answer["run_id"]
		})
	}
	testenv.Wait(t, group.Wait, "the answers to all callers")
	for _, one := range ids {
		require.Equal(t, ids[0], one)
		require.NotEmpty(t, one)
	}

	body := `{"ref": "refs/heads/main"}`
	sum := hmac.New(sha256.New, []byte(hook))
	sum.Write([]byte(body))
	delivery := map[string]string{
		"X-GitHub-Event": "push", "X-GitHub-Delivery": queue, "X-Hub-Signature-256": "sha256=" + hex.EncodeToString(sum.Sum(nil)),
	}
	status, answer = server.post(runs, body, delivery)
	require.Equal(t, nethttp.StatusAccepted, status, answer)
	started := answer["workflow_id"].(string)
	server.stop()
	server.start()
	status, answer = server.post(runs, body, delivery)
	require.Equal(t, nethttp.StatusConflict, status)
	require.Equal(t, "urn:reprise:problem:same-body", answer["type"])
	require.Contains(t, answer["detail"], started)
	var result struct{ Result any }
	require.NoError(t, testenv.WaitOutcome(t, env.Client().GetWorkflow(t.Context(), started, ""), &result))
	require.Equal(t, "refs/heads/main", result.Result)
	status, answer = server.post(runs+"?wait=60s", `{"name": "Ada", "nmae": 1}`, id("one"))
	require.Equal(t, nethttp.StatusOK, status)
	require.Equal(t, "hello Ada", answer["result"])

	require.Contains(t, server.errs.String(), `"a playbook cannot be served","playbook":"bad","problems":1`)
	status, answer = server.post("/v1/playbooks/bad/runs", `{}`, id("bad"))
	require.Equal(t, nethttp.StatusUnprocessableEntity, status)
	require.Equal(t, "urn:reprise:problem:invalid-playbook", answer["type"])
	require.Contains(t, answer["errors"].([]any)[0].(map[string]any)["message"], `unknown key "when"`)
	for _, hidden := range []string{token, hook} {
		require.NotContains(t, server.errs.String()+other.errs.String(), hidden)
	}
}

// TestServeChecksItsPlaybooks before it serves: problems of playbooks, and unknown
// secrets of triggers. A value that a run may supply is no problem.
func TestServeChecksItsPlaybooks(t *testing.T) {
	const hook = "a-secret-that-signs-deliveries"
	t.Setenv("REPRISE_AUTH_SERVE_TEST_GOOD", hook)
	t.Setenv("REPRISE_AUTH_SERVE_TEST_SAME", hook)
	t.Setenv("REPRISE_AUTH_SERVE_TEST_SHORT", "0123456789")
	folder := t.TempDir()
	write := func(name, triggers, steps string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: x"+triggers+"}\nworkflow:\n"+steps), 0o600))
	}
	serves := func(args ...string) (int, string) {
		var errs bytes.Buffer
		status := Main(t.Context(), append([]string{"serve", "--address", "127.0.0.1:1", "--playbooks", folder}, args...),
			cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errs})
		return status, errs.String()
	}
	write("supplied.yaml", ", triggers: [{sender: github, secret: serve_test_good}]",
		"  - {step: start, tool: \"{{ workload.tool }}\", url: \"{{ only_a_run_has_it }}\", next: other}\n  - {step: other, tool: playbook, name: \"{{ which }}\", names: [a]}\n")
	status, errs := serves()
	require.Equal(t, exitcode.NoServer, status, "nothing is wrong with the playbooks: %s", errs)
	write("bad.yaml", "", "  - {step: start, whne: x}\n")
	write("secrets.yaml", ", triggers: [{sender: github, secret: serve_test_none}, {sender: slack, secret: serve_test_short}, {sender: stripe, secret: serve_test_good}, {sender: hmac, secret: serve_test_same, header: X-Sum}]",
		"  - step: start\n")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "notes.txt"), []byte("no playbook"), 0o600))
	status, errs = serves()
	require.Equal(t, exitcode.Usage, status)
	for _, wanted := range []string{
		`bad.yaml:5:19: unknown key "whne"`, `secrets.yaml:3:`, `"serve_test_none" of this trigger cannot be used: its secret is not a connection`, "REPRISE_AUTH_SERVE_TEST_NONE",
		`"serve_test_short" of this trigger cannot be used: its secret is shorter`, `are equal`, "2 playbooks of --playbooks", "--allow-invalid",
	} {
		require.Contains(t, errs, wanted)
	}
	require.NotContains(t, errs, hook)
	status, errs = serves("--allow-invalid")
	require.Equal(t, exitcode.NoServer, status, errs)
}

func TestServeRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "callers.yaml")
	require.NoError(t, os.WriteFile(file, []byte("ci: {token: rpr_mistake}"), 0o600))
	for said, args := range map[string][]string{
		"must be used together":         {"--tls-cert", file},
		"read --tls-cert":               {"--tls-cert", file, "--tls-key", file},
		`the key "token"`:               {"--tokens", file},
		"is not a folder":               {"--playbooks", file},
		"--ui-origin is about --codec":  {"--ui-origin", "https://temporal.example.com"},
		`"https://x/" is not an origin`: {"--codec", "--ui-origin", "https://x/"},
		"--codec needs the keys":        {"--codec"},
		`needs the pattern "*"`:         {"token", "new", "ada", "--roles", "billing=decode"},
		"is not a valid caller name":    {"token", "new", "a b"},
		"no Temporal server responds":   {"--address", "127.0.0.1:1"},
	} {
		var errs bytes.Buffer
		status := Main(t.Context(), append([]string{"serve"}, args...), cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errs})
		require.Contains(t, []int{exitcode.Usage, exitcode.NoServer}, status, errs.String())
		require.Contains(t, errs.String(), said)
		require.NotContains(t, errs.String(), "rpr_mistake")
	}
}

// certified writes a certificate for this machine and its key, and gives a client
// that trusts it.
func certified(t *testing.T) (certificate, key string, client *nethttp.Client) {
	t.Helper()
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	return certificate, key, certify(t, certificate, key)
}

// certify writes a certificate and its key to files.
func certify(t *testing.T, certificate, key string) *nethttp.Client {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600))
	roots := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots.AddCert(parsed)
	transport := &nethttp.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &nethttp.Client{Transport: transport}
}

// servedWithTLS has a certificate of its own, and a client that trusts it.
func servedWithTLS(t *testing.T) (server *served, certificate, key string) {
	t.Helper()
	env := testenv.Temporal(t)
	certificate, key, client := certified(t)
	server = &served{t: t, client: client, args: []string{
		"--address", env.Address, "--namespace", env.Namespace, "--tls-cert", certificate, "--tls-key", key,
	}}
	server.start()
	return server, certificate, key
}

func TestServeWithTLS(t *testing.T) {
	t.Parallel()
	server, _, _ := servedWithTLS(t)
	client := server.client
	require.True(t, strings.HasPrefix(server.url, "https://"))
	response, err := client.Get(server.url + "/healthz")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, nethttp.StatusOK, response.StatusCode)
	require.Equal(t, "HTTP/2.0", response.Proto)
	plain, err := nethttp.Get(strings.Replace(server.url, "https", "http", 1) + "/healthz")
	require.NoError(t, err)
	require.NoError(t, plain.Body.Close())
	require.Equal(t, nethttp.StatusBadRequest, plain.StatusCode)
	require.Contains(t, server.errs.String(), "callbacks are refused", "there is no key")
}

// TestServeUnderResets: streams that are opened and given up as fast as they can be, on
// several connections, keep nobody else from an answer.
func TestServeUnderResets(t *testing.T) {
	t.Parallel()
	server, _, _ := servedWithTLS(t)
	const connections, streams = 4, 5_000
	var group sync.WaitGroup
	for range connections {
		group.Go(func() { resets(server.url, streams) })
	}
	flooded := make(chan struct{})
	go func() { group.Wait(); close(flooded) }()
	answered := 0
	for over := false; !over || answered < 3; {
		select {
		case <-flooded:
			over = true
		default:
		}
		began := time.Now()
		response, err := server.client.Get(server.url + "/v1/openapi.json")
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, nethttp.StatusOK, response.StatusCode)
		require.Less(t, time.Since(began), testenv.Within(10*time.Second))
		answered++
	}
	t.Logf("%d requests were answered meanwhile", answered)
}

// resets opens streams on one connection and resets each at once, until the server has
// enough.
func resets(url string, streams int) {
	connection, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:gosec // its own
	if err != nil {
		return
	}
	defer func() { _ = connection.Close() }()
	go func() { _, _ = io.Copy(io.Discard, connection) }()
	if _, err := io.WriteString(connection, http2.ClientPreface); err != nil {
		return
	}
	framer := http2.NewFramer(connection, nil)
	_ = framer.WriteSettings()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := range streams {
		block.Reset()
		for _, field := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/v1/playbooks/x/runs"}, {"x-n", strings.Repeat("x", 100)}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		id := uint32(2*i + 1)
		if framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}) != nil ||
			framer.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
			return
		}
	}
}

// TestServeReadsNewCertificates from its files: for new connections, and the last one
// that is whole.
func TestServeReadsNewCertificates(t *testing.T) {
	t.Parallel()
	server, certificate, key := servedWithTLS(t)
	client := server.client
	get := func(client *nethttp.Client) error {
		client.CloseIdleConnections()
		response, err := client.Get(server.url + "/healthz")
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	require.NoError(t, get(client))

	other, _, _ := certified(t)
	text, err := os.ReadFile(other)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certificate, text, 0o600)) // its key is not there yet
	require.Eventually(t, func() bool {
		return get(client) == nil && strings.Contains(server.errs.String(), "cannot reload the TLS certificate")
	}, patience, 50*time.Millisecond)
	require.NoError(t, get(client), "the previous one stays in use")

	renewed := certify(t, certificate, key)
	require.Eventually(t, func() bool { return get(renewed) == nil }, patience, 50*time.Millisecond)
	require.Error(t, get(client), "it trusts the one before alone")
	require.NoError(t, os.Remove(key))
	require.Eventually(t, func() bool {
		return get(renewed) == nil && strings.Count(server.errs.String(), "cannot reload the TLS certificate") == 2
	}, patience, 50*time.Millisecond)
	require.NotContains(t, server.errs.String(), "PRIVATE KEY")
}
