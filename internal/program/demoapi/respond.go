package demoapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// object is a JSON object.
type object map[string]any

// respondJSON writes value as JSON with the given status.
func respondJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil { // only values of this package come here
		panic(fmt.Sprintf("demo API: encode response: %v", err))
	}
	w.Header().Set("Content-Type", "application/json")
	if !bodyAllowed(status) {
		w.WriteHeader(status)
		return
	}
	body = append(body, '\n')
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// respondError writes an error in the format that all routes share.
func respondError(w http.ResponseWriter, status int, format string, args ...any) {
	respondJSON(w, status, object{"error": object{
		"status":  status,
		"code":    statusCode(status),
		"message": fmt.Sprintf(format, args...),
	}})
}

// statusCode converts a status to a word: 503 is "service_unavailable".
func statusCode(status int) string {
	text := http.StatusText(status)
	if text == "" {
		return "status_" + strconv.Itoa(status)
	}
	replace := strings.NewReplacer(" ", "_", "-", "_", "'", "")
	return strings.ToLower(replace.Replace(text))
}

// bodyAllowed reports whether a response with this status may have a body (RFC 9110, sections 15.3.5 and 15.4.5).
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// params reads whole numbers from the query and keeps the first problem, so that a handler reads all it needs and
// checks once.
type params struct {
	r     *http.Request
	query url.Values // parsed when it is first asked for
	err   error
}

// textValue returns the named parameter, "" if it is absent.
func (p *params) textValue(name string) string {
	if p.query == nil {
		p.query = p.r.URL.Query()
	}
	return p.query.Get(name)
}

// textOrHeader returns the named parameter, or else a header.
func (p *params) textOrHeader(name, header string) string {
	if value := p.textValue(name); value != "" {
		return value
	}
	return p.r.Header.Get(header)
}

// intValue returns the named parameter, or fallback if it is absent. A value that is not a number, or outside
// least..most, is an error.
func (p *params) intValue(name string, fallback, least, most int) int {
	return p.parseInt(name, p.textValue(name), fallback, least, most)
}

// intOrHeader is intValue with a header as the second source.
func (p *params) intOrHeader(name, header string, fallback, least, most int) int {
	return p.parseInt(name, p.textOrHeader(name, header), fallback, least, most)
}

func (p *params) parseInt(name, text string, fallback, least, most int) int {
	if text == "" {
		return fallback
	}
	value, err := strconv.Atoi(text)
	if err == nil && value >= least && value <= most {
		return value
	}
	if p.err == nil {
		p.err = fmt.Errorf("parameter %q is %q, expected a whole number from %d to %d", name, text, least, most)
	}
	return fallback
}

// rejectBad answers 400 if a parameter was invalid, and reports whether it did.
func (p *params) rejectBad(w http.ResponseWriter) bool {
	if p.err == nil {
		return false
	}
	respondError(w, http.StatusBadRequest, "%v", p.err)
	return true
}
