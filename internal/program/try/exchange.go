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

// errDryRun ends a request that is not to be sent.
var errDryRun = errors.New("nothing is sent in a dry run")

// maxSeen bounds the bytes of an answer that are kept for the recording, since answers may have
// any size.
const maxSeen = recording.MaxBytes

// maxSeenRequest is how many bytes of the body of a request are kept, to be shown.
const maxSeenRequest = 16 << 10

// exchange is a request as it went out and its answer as it came, without secrets.
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

// exchanges are the exchanges of one attempt: one, or with redirects several.
type exchanges struct {
	mu  sync.Mutex
	all []*exchange
	err error
}

// forgetExchanges forgets those of the attempt before.
func (e *exchanges) forgetExchanges() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all, e.err = nil, nil
}

// lastExchange returns the last one, nil for none.
func (e *exchanges) lastExchange() *exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.all) == 0 {
		return nil
	}
	return e.all[len(e.all)-1]
}

// refusedError is why a request was not sent, nil where it was.
func (e *exchanges) refusedError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

type seeing struct {
	of   *exchanges
	base http.RoundTripper
}

// RoundTrip keeps the request and its answer.
func (s seeing) RoundTrip(request *http.Request) (*http.Response, error) {
	known := tool.SecretsOf(request.Context())
	one := &exchange{
		known: known, method: request.Method, url: known.Text(tool.ShownURL(request.URL, tool.MaxShownURL)),
		headers: shownHeaders(request.Header, known), body: shownBody(known.Text(bodyOf(request))),
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

// shownBody returns a body of a request without what is named like a secret.
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

// bodyOf returns the beginning of the body of a request.
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

// shownHeaders returns headers by their names in lower case, those with credentials as stars.
func shownHeaders(headers http.Header, known *tool.Secrets) map[string]string {
	shown := map[string]string{}
	for name, values := range headers {
		text := known.Text(strings.Join(values, ", "))
		if credential.InHeader(name) {
			text = secrets.Stars
		}
		shown[strings.ToLower(name)] = text
	}
	return shown
}

// seenBody keeps what is read of an answer.
type seenBody struct {
	io.ReadCloser
	of *exchange
}

// Read keeps what it gives.
func (b *seenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.of.size += n
	b.of.content.Write(p[:min(n, max(maxSeen-b.of.content.Len(), 0))])
	return n, err
}

// refuses is a transport that sends nothing.
type refuses struct{ of *exchanges }

// RoundTrip sends nothing.
func (r refuses) RoundTrip(*http.Request) (*http.Response, error) {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.err = errDryRun
	return nil, errDryRun
}
