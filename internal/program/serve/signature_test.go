package serve_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/serve"
	"reprise/internal/test/testenv"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// mac is the hex HMAC-SHA256 of a text.
func mac(key, text string) string {
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write([]byte(text))
	return hex.EncodeToString(sum.Sum(nil))
}

// sha is the hex SHA-256 of a text.
func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// mac512 is the HMAC-SHA512 of a text.
func mac512(key, text string) []byte {
	sum := hmac.New(sha512.New, []byte(key))
	sum.Write([]byte(text))
	return sum.Sum(nil)
}

const slackBody = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V" +
	"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=" +
	"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN" +
	"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"

// TestSignatures: those that the senders publish as examples, and others.
// It passes mostSignatures.
func TestSignatures(t *testing.T) {
	t.Parallel()
	now := time.Unix(1531420618, 0)
	stamp := fmt.Sprint(now.Unix())
	big := hmac.New(sha512.New, []byte(secret))
	big.Write([]byte("body"))
	shop := &playbook.Trigger{Sender: playbook.HMAC, Header: "X-Sum", Prefix: "v1=", Algorithm: playbook.SHA512, Encoding: playbook.Base64}
	plain := &playbook.Trigger{Sender: playbook.HMAC, Header: "X-Sum", Algorithm: playbook.SHA256, Encoding: playbook.Hex}
	for name, row := range map[string]struct {
		trigger      *playbook.Trigger
		secret, body string
		header       []string
		says         string
	}{
		"github": {
			&playbook.Trigger{Sender: playbook.GitHub}, "It's a Secret to Everybody", "Hello, World!",
			[]string{"X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
			"",
		},
		"github, another body": {
			&playbook.Trigger{Sender: playbook.GitHub}, "It's a Secret to Everybody", "Hello, World?",
			[]string{"X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
			"does not match",
		},
		"github, another secret": {
			&playbook.Trigger{Sender: playbook.GitHub}, "It's a Secret to Nobody", "Hello, World!",
			[]string{"X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
			"does not match",
		},
		"github, truncated": {
			&playbook.Trigger{Sender: playbook.GitHub}, "It's a Secret to Everybody", "Hello, World!",
			[]string{"X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a"},
			"does not match",
		},
		"github, empty":     {&playbook.Trigger{Sender: playbook.GitHub}, secret, "x", []string{"X-Hub-Signature-256", "sha256="}, "does not match"},
		"github, no prefix": {&playbook.Trigger{Sender: playbook.GitHub}, secret, "x", []string{"X-Hub-Signature-256", mac(secret, "x")}, "does not match"},
		"github, sha1":      {&playbook.Trigger{Sender: playbook.GitHub}, secret, "x", []string{"X-Hub-Signature", "sha1=00"}, "no signature"},
		"github, two": {
			&playbook.Trigger{Sender: playbook.GitHub}, secret, "x",
			[]string{"X-Hub-Signature-256", "sha256=" + mac(secret, "x"), "X-Hub-Signature-256", "sha256=" + mac(secret, "x")},
			"no signature",
		},
		"slack": {
			&playbook.Trigger{Sender: playbook.Slack}, "8f742231b10e8888abcd99yyyzzz85a5", slackBody,
			[]string{"X-Slack-Request-Timestamp", stamp, "X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"},
			"",
		},
		"slack, another time": {
			&playbook.Trigger{Sender: playbook.Slack}, "8f742231b10e8888abcd99yyyzzz85a5", slackBody,
			[]string{"X-Slack-Request-Timestamp", "1531420619", "X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"},
			"does not match",
		},
		"slack, no time": {&playbook.Trigger{Sender: playbook.Slack}, secret, "x", []string{"X-Slack-Signature", "v0=00"}, "no signature"},
		"slack, old": {
			&playbook.Trigger{Sender: playbook.Slack}, secret, "x",
			[]string{"X-Slack-Request-Timestamp", "1531420317", "X-Slack-Signature", "v0=" + mac(secret, "v0:1531420317:x")},
			"off by 5m1s",
		},
		"slack, just in time": {
			&playbook.Trigger{Sender: playbook.Slack}, secret, "x",
			[]string{"X-Slack-Request-Timestamp", "1531420318", "X-Slack-Signature", "v0=" + mac(secret, "v0:1531420318:x")},
			"",
		},
		"slack, from the future": {
			&playbook.Trigger{Sender: playbook.Slack}, secret, "x",
			[]string{"X-Slack-Request-Timestamp", "1531420919", "X-Slack-Signature", "v0=" + mac(secret, "v0:1531420919:x")},
			"off by -5m1s",
		},
		"slack, no number": {
			&playbook.Trigger{Sender: playbook.Slack}, secret, "x",
			[]string{"X-Slack-Request-Timestamp", "soon", "X-Slack-Signature", "v0=" + mac(secret, "v0:soon:x")},
			"does not match",
		},
		"stripe": {&playbook.Trigger{Sender: playbook.Stripe}, secret, "x", []string{"Stripe-Signature", "t=" + stamp + ",v1=" + mac(secret, stamp+".x")}, ""},
		"stripe, changed secret": {
			&playbook.Trigger{Sender: playbook.Stripe}, secret, "x",
			[]string{"Stripe-Signature", "t=" + stamp + ", v1=00, v1=" + mac(secret, stamp+".x") + ",v0=aa"},
			"",
		},
		"stripe, v0 alone": {&playbook.Trigger{Sender: playbook.Stripe}, secret, "x", []string{"Stripe-Signature", "t=" + stamp + ",v0=" + mac(secret, stamp+".x")}, "does not match"},
		"stripe, old": {
			&playbook.Trigger{Sender: playbook.Stripe}, secret, "x",
			[]string{"Stripe-Signature", "t=1,v1=" + mac(secret, "1.x")},
			"check the clocks",
		},
		"stripe, a time of no number": {
			&playbook.Trigger{Sender: playbook.Stripe}, secret, "x",
			[]string{"Stripe-Signature", "t=99999999999999999999,v1=" + mac(secret, "99999999999999999999.x")},
			"does not match",
		},
		"stripe, far away": {
			&playbook.Trigger{Sender: playbook.Stripe}, secret, "x",
			[]string{"Stripe-Signature", "t=-9223372036854775808,v1=" + mac(secret, "-9223372036854775808.x")},
			"check the clocks",
		},
		"stripe, very many": {
			&playbook.Trigger{Sender: playbook.Stripe}, secret, "x",
			[]string{"Stripe-Signature", "t=" + stamp + strings.Repeat(",v1=00", 100) + ",v1=" + mac(secret, stamp+".x")},
			"does not match",
		},
		"hmac":                 {plain, secret, "body", []string{"X-Sum", mac(secret, "body")}, ""},
		"hmac, upper case":     {plain, secret, "body", []string{"X-Sum", strings.ToUpper(mac(secret, "body"))}, ""},
		"hmac, base64":         {shop, secret, "body", []string{"X-Sum", "v1=" + base64.StdEncoding.EncodeToString(big.Sum(nil))}, ""},
		"hmac, without prefix": {shop, secret, "body", []string{"X-Sum", base64.StdEncoding.EncodeToString(big.Sum(nil))}, "does not match"},
		"hmac, none":           {shop, secret, "body", nil, "no signature"},
	} {
		header := http.Header{}
		for i := 0; i+1 < len(row.header); i += 2 {
			header.Add(row.header[i], row.header[i+1])
		}
		err := serve.Verify(row.trigger, row.secret, header, []byte(row.body), now)
		if row.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, row.says, name)
		require.NotContains(t, err.Error(), row.secret, name)
	}
}

// deliver sends a delivery to the playbook signed.
func (w *world) deliver(body string, header ...string) reply {
	w.t.Helper()
	return w.ask(http.MethodPost, "/v1/playbooks/signed/runs", "", strings.NewReader(body), header...)
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	at := time.Now()
	w := newWorld(t, func(o *serve.Options) { o.Now = func() time.Time { return at } })
	w.work()
	body := `{"ref": "refs/heads/main", "n": 9007199254740993}`
	push := []string{
		"Content-Type", "application/json", "X-GitHub-Event", "push", "X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958",
		"X-Hub-Signature-256", "sha256=" + mac(secret, body),
	}
	first := w.deliver(body, push...)
	require.Equal(t, http.StatusAccepted, first.status, string(first.body))
	require.Equal(t, "signed:@hook:"+sha(sha(body)+"\n"+at.UTC().Format(time.DateOnly)), first.values["workflow_id"])
	require.Empty(t, first.header.Get("Location"), "who signs cannot ask")
	again := w.deliver(body, push...)
	require.Equal(t, http.StatusConflict, again.status, "it may be another one with the same body")
	require.Contains(t, again.values["detail"], "already started run "+first.values["workflow_id"].(string))
	at = at.Add(23 * time.Hour)
	require.Equal(t, http.StatusConflict, w.deliver(body, push...).status)
	at = at.Add(2 * time.Hour)
	later := w.deliver(body, push...)
	require.Equal(t, http.StatusAccepted, later.status, "behind 24 h it is another delivery")
	require.NotEqual(t, first.values["workflow_id"], later.values["workflow_id"])
	var result struct{ Result map[string]any }
	require.NoError(t, testenv.WaitOutcome(t, w.env.Client().GetWorkflow(t.Context(), first.values["workflow_id"].(string), ""), &result))
	require.Equal(t, "github", result.Result["sender"])
	require.Equal(t, "refs/heads/main", result.Result["body"].(map[string]any)["ref"])
	require.Equal(t, map[string]any{
		"x-github-event": "push", "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
	}, result.Result["headers"])
	require.Equal(t, http.StatusNotFound, w.ask(http.MethodGet, "/v1/runs/"+first.values["workflow_id"].(string), w.ci, nil).status)

	push[7] = "sha256=" + mac(secret, body+" ")
	require.Equal(t, http.StatusUnauthorized, w.deliver(body, push...).status)
	require.Contains(t, w.log.String(), "a delivery was refused")
	changed := w.deliver(body+" ", push...)
	require.Equal(t, http.StatusAccepted, changed.status, "another body is another delivery")
	require.NotEqual(t, first.values["workflow_id"], changed.values["workflow_id"])
	push[3] = "ping"
	require.Equal(t, map[string]any{"ignored": true}, w.deliver(body+" ", push...).values)
	push[3] = "star"
	require.Equal(t, map[string]any{"ignored": true}, w.deliver(body+" ", push...).values)
	waits := w.ask(http.MethodPost, "/v1/playbooks/signed/runs?wait=1s", "", strings.NewReader(body+" "), push...)
	require.Equal(t, http.StatusBadRequest, waits.status)
	for _, name := range []string{"hello", "absent", "broken"} {
		given := w.ask(http.MethodPost, "/v1/playbooks/"+name+"/runs", "", strings.NewReader(body+" "), push...)
		require.Equal(t, http.StatusUnauthorized, given.status, name)
	}
}

func TestDeliveriesOfOthers(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := newWorld(t, func(o *serve.Options) { o.Now = func() time.Time { return now } })
	stamp := fmt.Sprint(now.Unix())
	const asForm, asJSON = "application/x-www-form-urlencoded", "application/json"
	slack := func(body, kind string) reply {
		return w.deliver(body, "Content-Type", kind, "X-Slack-Request-Timestamp", stamp, "X-Slack-Signature", "v0="+mac(secret, "v0:"+stamp+":"+body))
	}
	challenge := slack(`{"type": "url_verification", "challenge": "3eZbrw1a"}`, asJSON)
	require.Equal(t, map[string]any{"challenge": "3eZbrw1a"}, challenge.values)
	command := slack(slackBody, asForm)
	require.Equal(t, http.StatusAccepted, command.status)
	require.Regexp(t, "^signed:@chat:~", command.values["workflow_id"])
	require.Equal(t, http.StatusAccepted, slack(`payload=%7B%22trigger_id%22%3A%22t1%22%7D`, asForm).status)
	require.Equal(t, http.StatusBadRequest, slack(`a=%zz`, asForm).status)
	require.Equal(t, http.StatusBadRequest, slack(`a=%ff`, asForm).status)
	require.Equal(t, http.StatusBadRequest, slack(`payload=%7B`, asForm).status)
	require.Equal(t, http.StatusBadRequest, slack(`{`, asJSON).status)
	require.Equal(t, http.StatusBadRequest, slack("\xff", "text/plain").status)
	require.Equal(t, "signed:@chat:Ev1", slack(`{"event_id": "Ev1", "event": {"type": "message"}}`, asJSON).values["workflow_id"])

	stripe := `{"id": "evt_1", "type": "charge.failed"}`
	paid := w.deliver(stripe, "Content-Type", "application/json", "Stripe-Signature", "t="+stamp+",v1="+mac(secret, stamp+"."+stripe))
	require.Equal(t, "signed:@pay:evt_1", paid.values["workflow_id"])

	shop := []string{"X-Shop-Signature", "v1=" + base64.StdEncoding.EncodeToString(mac512(secret, "any text"))}
	first := w.deliver("any text", shop...)
	require.Equal(t, http.StatusAccepted, first.status)
	require.Equal(t, http.StatusConflict, w.deliver("any text", shop...).status)
	paid = w.deliver(stripe+" ", "Stripe-Signature", "t="+stamp+",v1="+mac(secret, stamp+"."+stripe+" "))
	require.Equal(t, true, paid.values["repeated"], "who signs says that it is the same")
	for _, header := range []string{"X-Lost-Signature", "X-Short-Signature"} {
		require.Equal(t, http.StatusUnauthorized, w.deliver("x", header, mac("", "x")).status, "what has no secret is no door")
		require.Equal(t, http.StatusUnauthorized, w.deliver("x", header, mac("0123456789", "x")).status)
	}
	require.Contains(t, w.log.String(), "not a connection that this program knows")
	require.Contains(t, w.log.String(), "shorter than 16 bytes")
}

// TestDeliveriesByHeader: a header distinguishes deliveries with equal bodies, where the author says so.
func TestDeliveriesByHeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.write("pings", `apiVersion: reprise/v1
kind: Playbook
metadata:
  name: pings
  triggers:
    - {sender: hmac, secret: shop, header: X-Sum, body: text, identity: header X-Request-Id}
    - {sender: hmac, secret: new_bank, header: X-Sum, body: text}
workflow: [{step: start}]
`)
	deliver := func(key, body string, header ...string) reply {
		return w.ask(http.MethodPost, "/v1/playbooks/pings/runs", "", strings.NewReader(body), append(header, "X-Sum", mac(key, body))...)
	}
	first := deliver(secret, "ping", "X-Request-Id", "a")
	require.Equal(t, http.StatusAccepted, first.status, string(first.body))
	require.Equal(t, "pings:@shop:a", first.values["workflow_id"])
	require.NoError(t, testenv.WaitOutcome(t, w.env.Client().GetWorkflow(t.Context(), "pings:@shop:a", ""), nil))
	second := deliver(secret, "ping", "X-Request-Id", "b")
	require.Equal(t, http.StatusAccepted, second.status, "an equal body of another delivery")
	again := deliver(secret, "ping", "X-Request-Id", "a")
	require.Equal(t, http.StatusOK, again.status)
	require.Equal(t, first.values["run_id"], again.values["run_id"])
	require.Equal(t, "completed", again.values["status"], "the status of a repetition is that of the run")
	require.Equal(t, http.StatusUnprocessableEntity, deliver(secret, "pong", "X-Request-Id", "a").status, "another body under the name")
	require.Equal(t, http.StatusAccepted, deliver(secret, "", "X-Request-Id", "c").status, "an empty body has a name too")
	for _, header := range [][]string{{}, {"X-Request-Id", ""}, {"X-Request-Id", "a", "X-Request-Id", "b"}, {"X-Request-Id", "ü"}} {
		refused := deliver(secret, "ping", header...)
		require.Equal(t, http.StatusBadRequest, refused.status, "%v", header)
		require.Contains(t, refused.values["detail"], "X-Request-Id")
	}
	require.Equal(t, http.StatusAccepted, deliver(secret+"-2", "ping").status, "another sender's")
	require.Equal(t, http.StatusConflict, deliver(secret+"-2", "ping").status)
}

// TestDeliveriesWithOneID: a delivery with the ID of an earlier one and another body is refused, and not taken for a repetition.
func TestDeliveriesWithOneID(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := newWorld(t, func(o *serve.Options) { o.Now = func() time.Time { return now } })
	w.work()
	stamp := fmt.Sprint(now.Unix())
	senders := map[string]func(body string) reply{
		"bank": func(body string) reply { return w.deliver(body, "X-Bank-Signature", mac(secret, body)) },
		"pay": func(body string) reply {
			return w.deliver(body, "Stripe-Signature", "t="+stamp+",v1="+mac(secret, stamp+"."+body))
		},
		"chat": func(body string) reply {
			return w.deliver(body, "X-Slack-Request-Timestamp", stamp, "X-Slack-Signature", "v0="+mac(secret, "v0:"+stamp+":"+body))
		},
	}
	const body = `{"id": "a", "event_id": "a", "event": {"id": "a", "status": "%s"}, "pending_webhooks": %d}`
	for sender, deliver := range senders {
		first := deliver(fmt.Sprintf(body, "new", 2))
		require.Equal(t, http.StatusAccepted, first.status, "%s: %s", sender, first.body)
		require.Equal(t, "signed:@"+sender+":a", first.values["workflow_id"])
		again := deliver(fmt.Sprintf(strings.ReplaceAll(body, " ", "  "), "new", 2))
		require.Equal(t, true, again.values["repeated"], "%s: the same values in another form: %s", sender, again.body)
		other := deliver(fmt.Sprintf(body, "paid", 2))
		require.Equal(t, http.StatusConflict, other.status, "%s: another event under the ID: %s", sender, other.body)
		require.Equal(t, "urn:reprise:problem:id-reused", other.values["type"])
		require.Contains(t, other.values["detail"], "started run signed:@"+sender+":a")
		require.Equal(t, sender == "bank", strings.Contains(string(other.body), "If event.id is the ID of what the deliveries are about"))
		require.Equal(t, true, deliver(fmt.Sprintf(body, "new", 2)).values["repeated"], sender)
	}
	require.Equal(t, true, senders["pay"](fmt.Sprintf(body, "new", 1)).values["repeated"], "Stripe counts the webhooks that await the event")
	require.Equal(t, 3, strings.Count(w.log.String(), `"msg":"a request was refused"`))

	_, err := w.begin(t.Context(), serve.Order{
		WorkflowID: "signed:@bank:old", File: "signed.yaml", Source: []byte(signed), Workload: map[string]any{"trigger": nil},
		Memo: map[string]any{protocol.RequestMemo: map[string]any{"caller": "@bank", "playbook": "signed", "body": sha("old")}},
	})
	require.NoError(t, err)
	old := senders["bank"](`{"event": {"id": "old"}}`)
	require.Equal(t, true, old.values["repeated"], "the run of an earlier version does not know its body: %s", old.body)
}

// FuzzDelivery: whatever is signed is taken apart or refused.
func FuzzDelivery(f *testing.F) {
	for _, kind := range []string{"application/json", "application/x-www-form-urlencoded", "text/plain", "", "a/b+json; x"} {
		f.Add("github", kind, []byte(`{"id": "a", "event": {"type": 1}, "payload": []}`))
		f.Add("slack", kind, []byte(`payload={"trigger_id":[]}&a=1&a=2&%ff=%fe`))
		f.Add("stripe", kind, []byte("[\"\xff\"]"))
		f.Add("hmac", kind, []byte("null"))
	}
	f.Fuzz(func(t *testing.T, sender, kind string, body []byte) {
		trigger := &playbook.Trigger{Sender: playbook.Sender(sender), Header: "X-Sum", Body: playbook.BodyJSON, ID: []string{"id"}}
		header := http.Header{"Content-Type": {kind}, "X-Github-Event": {kind}}
		id, values, err := serve.ReadDelivery(trigger, header, body)
		if err != nil {
			var told *serve.Problem
			require.ErrorAs(t, err, &told)
			require.Equal(t, http.StatusBadRequest, told.Status)
			return
		}
		require.NotEmpty(t, id)
		require.True(t, serve.Encodes(values))
	})
}

// FuzzWorkload: a body is an object that a run can have, or is refused.
func FuzzWorkload(f *testing.F) {
	for _, body := range []string{`{}`, `{"a": {"a": [1e400, -0, "\ud800"]}}`, `{"a": 1, "a": 2}`, "{\"\xff\": 1}", `[]`, ``, ` `, `{"a":9007199254740993}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		value, err := serve.ReadJSON(body)
		if err != nil {
			var told *serve.Problem
			require.ErrorAs(t, err, &told)
			return
		}
		require.True(t, serve.Encodes(value))
	})
}

// FuzzSignature: no header makes a signature of what was not signed.
func FuzzSignature(f *testing.F) {
	f.Add("t=1,v1=00", "x")
	f.Add("sha256=", "")
	f.Add("v0=", "v0")
	f.Add(strings.Repeat("v1=,", 100), "\xff")
	f.Fuzz(func(t *testing.T, value, body string) {
		header := http.Header{
			"X-Hub-Signature-256": {value}, "Stripe-Signature": {value}, "X-Slack-Signature": {value},
			"X-Slack-Request-Timestamp": {value}, "X-Sum": {value},
		}
		for _, sender := range []playbook.Sender{playbook.GitHub, playbook.Stripe, playbook.Slack, playbook.HMAC} {
			trigger := &playbook.Trigger{Sender: sender, Header: "X-Sum", Algorithm: playbook.SHA512, Encoding: playbook.Base64}
			require.Error(t, serve.Verify(trigger, secret, header, []byte(body), time.Unix(1, 0)))
		}
	})
}
