package playtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// maxRequestBody bounds the stored body of a request, in bytes: a test stores all requests until it ends.
const maxRequestBody = 1 << 20

// largeBody stands for a body that a test does not store, so that no expectation of its content is met.
const largeBody = "(a body of more than 1 MiB, which tests do not keep)"

// doing is the current attempt, and the result of its request.
type doing struct {
	in                   interpreter.ToolInput
	unanswered, timedOut bool
}

type doingKey struct{}

// transport answers requests of the http tool from the script.
type transport struct{ stage *stage }

// errUnanswered ends an attempt for which the test has no answer.
var errUnanswered = errors.New("the test has no more answers for this request")

// RoundTrip answers one request.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	attempt, isAttempt := request.Context().Value(doingKey{}).(*doing)
	if !isAttempt || t.stage.isTokenURL(request.URL) {
		return tokenAnswer(request)
	}
	in := attempt.in
	seen, err := describeRequest(request)
	if err != nil {
		return nil, err
	}
	who := t.stage.callerOf(request.Context(), in)
	t.stage.seen.addRequest(who, t.stage.sinceBegin(), in.OperationKey, seen)
	if t.stage.script.losesWorker(who) {
		return nil, loseWorker(request.Context())
	}
	answer := t.stage.script.nextAnswer(who, func(a *playbook.TestAnswer) bool { return !a.IsForAwaited() && !a.Words.Has("result") })
	if answer == nil && in.Sends != "" { // what begins an attempt that is awaited is accepted
		return respondAs(request, &playbook.TestAnswer{Status: http.StatusAccepted}, t.stage)
	}
	if answer == nil {
		t.stage.script.addMiss(unansweredRequest{who: who, request: seen, needs: "{status: 200, body: {}}"})
		t.stage.stopRun("a request has no answer")
		attempt.unanswered = true
		return nil, errUnanswered
	}
	switch {
	case answer.Lost:
		return nil, loseWorker(request.Context())
	case answer.Error == playbook.TestErrorConnection:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case answer.Error == playbook.TestErrorTimeout:
		attempt.timedOut = true
		return nil, context.DeadlineExceeded
	}
	return respondAs(request, answer, t.stage)
}

// describeRequest returns a request in the form in which tests compare it: method, url without query, params, headers
// with lower-case names, body.
func describeRequest(request *http.Request) (map[string]any, error) {
	bare := *request.URL
	bare.RawQuery, bare.Fragment = "", ""
	seen := map[string]any{"method": request.Method, "url": bare.String()}
	params, headers := map[string]any{}, map[string]any{}
	for name, values := range request.URL.Query() {
		params[name] = listOrOne(values)
	}
	for name, values := range request.Header {
		headers[strings.ToLower(name)] = listOrOne(values)
	}
	if len(params) > 0 {
		seen["params"] = params
	}
	seen["headers"] = headers
	if request.Body == nil || request.Body == http.NoBody {
		return seen, nil
	}
	data, err := io.ReadAll(io.LimitReader(request.Body, maxRequestBody+1))
	_ = request.Body.Close()
	if err != nil {
		return nil, err
	}
	if len(data) > maxRequestBody { // a part of JSON would be compared as a text
		seen["body"] = largeBody
		return seen, nil
	}
	body, err := expression.Decode(data)
	if err != nil {
		if form, isForm := formOf(request, data); isForm {
			seen["form"] = form
			return seen, nil
		}
		body = string(data)
	}
	seen["body"] = body
	return seen, nil
}

func formOf(request *http.Request, data []byte) (map[string]any, bool) {
	if !strings.HasPrefix(request.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return nil, false
	}
	values, err := url.ParseQuery(string(data))
	if err != nil {
		return nil, false
	}
	form := map[string]any{}
	for name, values := range values {
		form[name] = listOrOne(values)
	}
	return form, true
}

func listOrOne(values []string) any {
	if len(values) == 1 {
		return values[0]
	}
	return lists.Map(values, func(value string) any { return value })
}

// ofTheWire are headers about the transfer of a body. Bodies of tests are not compressed, even if the recorded body
// was.
var ofTheWire = []string{"content-length", "content-encoding", "transfer-encoding"}

// respondAs creates the HTTP response for an answer in the test.
func respondAs(request *http.Request, answer *playbook.TestAnswer, s *stage) (*http.Response, error) {
	status := cmp.Or(answer.Status, http.StatusOK)
	header := http.Header{"Date": {s.now().Format(http.TimeFormat)}}
	var body []byte
	switch {
	case answer.Words.Has("body_text"):
		body = []byte(answer.BodyText)
	case answer.Words.Has("body"):
		encoded, err := json.Marshal(expression.Of(answer.Body))
		if err != nil {
			return nil, fmt.Errorf("encode the answer as JSON: %w", err)
		}
		body = encoded
		header.Set("Content-Type", "application/json")
	}
	for name, value := range answer.Headers {
		if slices.Contains(ofTheWire, strings.ToLower(name)) {
			continue
		}
		header.Del(name)
		if list, isList := value.([]any); isList {
			for _, one := range list {
				header.Add(name, expression.Text(one))
			}
			continue
		}
		header.Set(name, expression.Text(value))
	}
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status) + " " + http.StatusText(status),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: request,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// tokenAnswer answers a request for an OAuth 2.0 token.
func tokenAnswer(request *http.Request) (*http.Response, error) {
	body := []byte(`{"access_token": "made-up-token", "token_type": "Bearer", "expires_in": 3600}`)
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// isTokenURL reports whether a URL is the token URL of a connection of the test.
func (s *stage) isTokenURL(at *url.URL) bool {
	for _, connection := range s.test.Connections {
		for _, kind := range []string{"oauth2", "jwt"} {
			if expression.Text(expression.MapMember(expression.MapMember(connection, kind), "token_url")) == at.String() {
				return true
			}
		}
	}
	return false
}
