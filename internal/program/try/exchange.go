package try

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"reprise/activities/tool"
	"reprise/internal/base/secrets"
	"reprise/internal/program/recording"
	"reprise/interpreter/credential"
	"reprise/interpreter/expression"
)

// errDryRun ends a request that must not be sent.
var errDryRun = errors.New("nothing is sent in a dry run")

// maxSeen bounds the bytes of a response that are kept for the recording: responses may have any size.
const maxSeen = recording.MaxBytes

// maxSeenRequest bounds the bytes of a request's body that are kept to be shown.
const maxSeenRequest = 16 << 10

// exchange is a request as it was sent and its response as it arrived, with secrets masked.
type exchange struct {
	method, url string
	headers     map[string]string
	body        string
	status      int
	answered    map[string]string // headers
	content     bytes.Buffer      // of the answer, up to maxSeen
	size        int               // of the answer, in bytes
	known       *tool.Secrets     // of the attempt
}

// exchanges are the exchanges of one attempt: several if there are redirects.
type exchanges struct {
	mu  sync.Mutex
	all []*exchange
	err error
}

// forgetExchanges removes the exchanges of the previous attempt.
func (e *exchanges) forgetExchanges() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all, e.err = nil, nil
}

// lastExchange returns the last exchange; nil if there is none.
func (e *exchanges) lastExchange() *exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.all) == 0 {
		return nil
	}
	return e.all[len(e.all)-1]
}

// refusedError returns why a request was not sent; nil if it was.
func (e *exchanges) refusedError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

type seeing struct {
	of   *exchanges
	base http.RoundTripper
}

// RoundTrip records the request and its response.
func (s seeing) RoundTrip(request *http.Request) (*http.Response, error) {
	known := tool.SecretsOf(request.Context())
	one := &exchange{
		known: known, method: request.Method, url: known.MaskText(tool.ShownURL(request.URL, tool.MaxShownURL)),
		headers: shownHeaders(request.Header, known), body: shownBody(known.MaskText(bodyOf(request))),
	}
	s.of.mu.Lock()
	s.of.all = append(s.of.all, one)
	s.of.mu.Unlock()
	response, err := s.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	one.status, one.answered = response.StatusCode, shownHeaders(response.Header, known)
	response.Body = &seenBody{ReadCloser: response.Body, of: one}
	return response, nil
}

// shownBody returns the body of a request without members whose names suggest secrets.
func shownBody(text string) string {
	value, err := expression.Decode([]byte(text))
	if err != nil {
		return credential.WithoutGiven(text)
	}
	masked, err := expression.Encode(recording.MaskedValue(value, nil))
	if plain, failed := expression.Encode(value); err != nil || failed != nil || string(plain) == string(masked) {
		return text
	}
	return string(masked)
}

// bodyOf returns the beginning of a request's body.
func bodyOf(request *http.Request) string {
	if request.GetBody == nil {
		return ""
	}
	body, err := request.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	text, _ := io.ReadAll(io.LimitReader(body, maxSeenRequest)) // it is in memory
	return string(text)
}

// shownHeaders returns headers with lower-case names. Credentials are replaced by stars.
func shownHeaders(headers http.Header, known *tool.Secrets) map[string]string {
	shown := map[string]string{}
	for name, values := range headers {
		text := known.MaskText(strings.Join(values, ", "))
		if credential.HeaderMayHoldSecret(name) {
			text = secrets.Stars
		}
		shown[strings.ToLower(name)] = text
	}
	return shown
}

// seenBody records what is read from a response.
type seenBody struct {
	io.ReadCloser
	of *exchange
}

// Read reads and records.
func (b *seenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.of.size += n
	b.of.content.Write(p[:min(n, max(maxSeen-b.of.content.Len(), 0))])
	return n, err
}

// refuses is a transport that sends nothing.
type refuses struct{ of *exchanges }

// RoundTrip returns errDryRun.
func (r refuses) RoundTrip(*http.Request) (*http.Response, error) {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.err = errDryRun
	return nil, errDryRun
}
