package serve_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/serve"
	"reprise/internal/test/testenv"
)

// stalled opens connections that each send a head and some bytes of the body, and then
// nothing.
func (w *world) stalled(n int, path, head string) {
	w.t.Helper()
	for range n {
		connection, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		require.NoError(w.t, err)
		w.t.Cleanup(func() { _ = connection.Close() })
		_, err = io.WriteString(connection, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"+head+"\r\n{\"a\":")
		require.NoError(w.t, err)
	}
}

// stalledBodies are more than there are places for requests.
const stalledBodies = 400

// atOnce is how long a request may take while others stall: less than it would wait
// for a place, with room for a machine that is busy.
const atOnce = 4 * time.Second

// TestStalledBodiesOfStrangers: bodies that nobody has signed take no places from those
// who sign, nor from callers.
func TestStalledBodiesOfStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickStart)
	w.stalled(stalledBodies, "/v1/playbooks/signed/runs", "X-Hub-Signature-256: sha256=00\r\n")
	began := time.Now()
	body := `{"ref": "refs/heads/main"}`
	given := w.deliver(body, "Content-Type", "application/json", "X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+mac(secret, body))
	require.Equal(t, http.StatusAccepted, given.status, string(given.body))
	require.Equal(t, http.StatusAccepted, w.start("hello/runs", w.ci, `{}`).status)
	require.Less(t, time.Since(began), atOnce)
}

// TestStalledBodiesOfACaller take no places from other callers, nor from the same one.
func TestStalledBodiesOfACaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickStart)
	w.stalled(stalledBodies, "/v1/playbooks/hello/runs", "Content-Type: application/json\r\nAuthorization: Bearer "+w.ops+"\r\n")
	began := time.Now()
	for _, token := range []string{w.ci, w.ops} {
		given := w.start("hello/runs", token, `{}`)
		require.Equal(t, http.StatusAccepted, given.status, string(given.body))
	}
	require.Less(t, time.Since(began), atOnce)
}

// TestStalledBodiesOfAnswers: who has a token of one attempt takes no places from others.
func TestStalledBodiesOfAnswers(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	run, token := a.ask("stalled", approval)
	a.stalled(stalledBodies/2, "/v1/approvals/"+token, "Content-Type: application/x-www-form-urlencoded\r\n")
	a.stalled(stalledBodies/2, "/v1/callbacks/"+token+"/complete", "Content-Type: application/json\r\n")
	began := time.Now()
	given := a.start("hello/runs", a.ci, `{}`)
	require.Equal(t, http.StatusAccepted, given.status, string(given.body))
	require.Equal(t, http.StatusOK, a.open(token).status)
	require.Less(t, time.Since(began), atOnce)
	answered := a.post(token, url.Values{"option": {"reject"}, "by": {"ada"}})
	require.Equal(t, http.StatusSeeOther, answered.status, string(answered.body))
	require.EqualValues(t, "completed", a.ends(run).Status)
}

// TestDeliveriesAreTheirBytes: whatever the headers say that nobody has signed, a
// delivery is one run.
func TestDeliveriesAreTheirBytes(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := newWorld(t, quickStart, func(o *serve.Options) { o.Now = func() time.Time { return now } })
	stamp := fmt.Sprint(now.Unix())
	body := `{"id": "evt_1", "event_id": "Ev1", "ref": "x", "event": {"type": "message"}}`
	for name, signature := range map[string][]string{
		"stripe": {"Stripe-Signature", "t=" + stamp + ",v1=" + mac(secret, stamp+"."+body)},
		"slack":  {"X-Slack-Request-Timestamp", stamp, "X-Slack-Signature", "v0=" + mac(secret, "v0:"+stamp+":"+body)},
		"github": {"X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256=" + mac(secret, body)},
		"hmac":   {"X-Shop-Signature", "v1=" + base64.StdEncoding.EncodeToString(mac512(secret, body))},
	} {
		ids := map[any]bool{}
		for _, more := range [][]string{
			{"Content-Type", "application/json"},
			{"Content-Type", "text/plain"},
			{"Content-Type", "application/x-www-form-urlencoded"},
			{},
			{"Content-Type", "application/json", "X-GitHub-Delivery", "1", "X-Shop-Delivery", "1"},
			{"Content-Type", "application/json", "X-GitHub-Delivery", "2", "X-Shop-Delivery", "2", "X-Slack-Retry-Num", "2"},
		} {
			given := w.deliver(body, append(more, signature...)...)
			require.Equal(t, http.StatusAccepted, given.status, "%s %v: %s", name, more, given.body)
			ids[given.values["workflow_id"]] = true
		}
		require.Len(t, ids, 1, name)
	}
}

// TestDeliveriesWithKeysTwice are refused: readers differ in which of the two they use.
func TestDeliveriesWithKeysTwice(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := newWorld(t, quickStart, func(o *serve.Options) { o.Now = func() time.Time { return now } })
	stamp := fmt.Sprint(now.Unix())
	for body, says := range map[string]string{
		`{"id": "a", "id": "b"}`:                                    "id",
		`{"a": [{"b": {"c": 1, "c": 2}}]}`:                          "c",
		`{"a": 1, "\u0061": 2}`:                                     "a",
		"payload=%7B%7D&payload=%7B%7D":                             "payload",
		"payload=%7B%22trigger_id%22%3A1%2C%22trigger_id%22%3A2%7D": "trigger_id",
	} {
		for _, kind := range []string{"application/json", "application/x-www-form-urlencoded", "text/plain"} {
			given := w.deliver(body, "Content-Type", kind, "X-Slack-Request-Timestamp", stamp,
				"X-Slack-Signature", "v0="+mac(secret, "v0:"+stamp+":"+body))
			require.Equal(t, http.StatusBadRequest, given.status, "%s as %s: %s", body, kind, given.body)
			require.Contains(t, given.values["detail"], "twice", body)
			require.Contains(t, given.values["detail"], says, body)
		}
	}
}

// TestTriggersAreSendersOfTheirOwn: what one sender calls a delivery says nothing of
// what another one does, and only headers that its trigger names reach a run.
func TestTriggersAreSendersOfTheirOwn(t *testing.T) {
	t.Parallel()
	orders := make(chan serve.Order, 10)
	w := newWorld(t, func(o *serve.Options) {
		o.Start = func(_ context.Context, order serve.Order) (serve.Begun, error) {
			orders <- order
			return serve.Begun{RunID: "run"}, nil
		}
	})
	deliver := func(body string, header ...string) serve.Order {
		given := w.deliver(body, append(header, "X-Shop-Topic", "orders", "X-Api-Key", "key-of-another", "X-Forwarded-For", "10.0.0.1")...)
		require.Equal(t, http.StatusAccepted, given.status, string(given.body))
		return testenv.Receive(t, orders, "the order of a run")
	}
	const body = `{"event": {"id": "1"}}`
	shop := deliver(body, "X-Shop-Signature", "v1="+base64.StdEncoding.EncodeToString(mac512(secret, body)))
	bank := deliver(body, "X-Bank-Signature", mac(secret, body))
	renewed := deliver(body, "X-Bank-Signature", mac(secret+"-2", body))
	require.Equal(t, "signed:@bank:1", bank.WorkflowID)
	require.Equal(t, bank.WorkflowID, renewed.WorkflowID, "one sender whose secret changes")
	require.Regexp(t, `^signed:@shop:[0-9a-f]{64}$`, shop.WorkflowID, "a body is known by its hash, of the day")
	headers := func(order serve.Order) any { return order.Workload["trigger"].(map[string]any)["headers"] }
	require.Equal(t, map[string]any{"x-shop-topic": "orders"}, headers(shop))
	require.Equal(t, map[string]any{}, headers(bank))
	github := deliver(body, "X-GitHub-Event", "push", "X-GitHub-Delivery", "d1", "X-GitHub-Token", "t", "X-Hub-Signature-256", "sha256="+mac(secret, body))
	require.Equal(t, map[string]any{"x-github-event": "push", "x-github-delivery": "d1"}, headers(github))
}

// TestCallersForgeNoDelivery: what says that a delivery has started a run comes from
// deliveries alone.
func TestCallersForgeNoDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickStart)
	given := w.start("signed/runs", w.ci, `{"trigger": {"sender": "github", "body": {"ref": "refs/heads/main"}}}`)
	require.Equal(t, http.StatusUnprocessableEntity, given.status, string(given.body))
	require.Contains(t, given.values["detail"], "trigger")
	require.Equal(t, http.StatusUnprocessableEntity, w.start("signed/runs", w.ci, `{"trigger": null}`).status)
	require.Equal(t, http.StatusAccepted, w.start("hello/runs", w.ci, `{"trigger": 1}`).status, "an ordinary key where there are no triggers")
	require.Equal(t, http.StatusAccepted, w.start("signed/runs", w.ci, `{}`).status)
}
