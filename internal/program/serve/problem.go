package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"unicode/utf8"

	"reprise/internal/base/connect"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// Problem is a response that says why a request failed (RFC 9457).
type Problem struct {
	Type   string `json:"type"` // urn:reprise:problem: and a word
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Errors are the problems of an invalid playbook.
	Errors []Flaw `json:"errors,omitempty"`

	header http.Header // besides the usual ones
}

// Flaw is one problem of a playbook.
type Flaw struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

// shownDetail bounds a problem's detail, in bytes.
const shownDetail = 2000

func newProblem(status int, word, format string, args ...any) *Problem {
	detail := strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")
	if len(detail) > shownDetail {
		end := shownDetail
		for !utf8.RuneStart(detail[end]) {
			end--
		}
		detail = detail[:end] + "…"
	}
	return &Problem{Type: "urn:reprise:problem:" + word, Title: http.StatusText(status), Status: status, Detail: detail}
}

// withHeader adds a header.
func (p *Problem) withHeader(name, value string) *Problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Set(name, value)
	return p
}

// unauthorizedProblem returns the same response for all unknown clients, whatever they request.
func unauthorizedProblem() *Problem {
	return newProblem(http.StatusUnauthorized, "unauthorized", "the request has neither a valid token nor a valid signature").
		withHeader("WWW-Authenticate", "Bearer")
}

// notFound returns the response for things that do not exist, and for those that the caller may not see.
func notFound() *Problem {
	return newProblem(http.StatusNotFound, "not-found", "not found, or not visible to you")
}

func badRequest(format string, args ...any) *Problem {
	return newProblem(http.StatusBadRequest, "bad-request", format, args...)
}

// InvalidPlaybook returns the problem for a playbook that is invalid.
func InvalidPlaybook(file string, found source.Diagnostics) *Problem {
	p := newProblem(http.StatusUnprocessableEntity, "invalid-playbook", "%s has %d problems; nothing was started", file, len(found))
	found, _ = found.FirstOf(playbook.MaxShown)
	for _, one := range found {
		p.Errors = append(p.Errors, Flaw{Line: one.Pos.Line, Column: one.Pos.Column, Code: one.Code, Message: one.Message})
	}
	return p
}

// UnfitWorkload returns the problem for a workload that a playbook does not accept.
func UnfitWorkload(reasons ...string) *Problem {
	return newProblem(http.StatusUnprocessableEntity, "unfit-workload", "%s", strings.Join(reasons, "\n"))
}

// problemOf returns what clients are sent for an error. Internal errors are only in the log.
func problemOf(err error) *Problem {
	var known *Problem
	switch {
	case errors.As(err, &known):
		return known
	case connect.IsUnreachable(err):
		return newProblem(http.StatusServiceUnavailable, "unavailable",
			"the Temporal server does not respond; the request may or may not have taken effect, so repeat it").withHeader("Retry-After", "5")
	}
	return newProblem(http.StatusInternalServerError, "internal", "the request failed; see the log of starter serve")
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   any // JSON, or bytes that are sent as they are; nil for none
}

func (p *Problem) problemAnswer() answer { return answer{status: p.Status, header: p.header, body: p} }

// writeTo sends the response.
func (a answer) writeTo(w http.ResponseWriter) {
	header := w.Header()
	maps.Copy(header, a.header)
	if page, isPage := a.body.([]byte); isPage || a.body == nil {
		w.WriteHeader(a.status)
		_, _ = w.Write(page)
		return
	}
	kind := "application/json"
	if _, bad := a.body.(*Problem); bad {
		kind = "application/problem+json"
	}
	header.Set("Content-Type", kind)
	w.WriteHeader(a.status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(a.body) // of a client that has left nothing more can be said
}
