package serve

import (
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"reprise/interpreter/expression"
)

// MaxBody is the largest body of a request, in bytes: it is read into memory before its signature is checked, and
// becomes the workload of a run, in history.
const MaxBody = 1 << 20

func tooLarge(most int64) *Problem {
	return newProblem(http.StatusRequestEntityTooLarge, "too-large", "the body may have at most %d bytes", most)
}

// wantJSON refuses bodies that are not declared as JSON.
func wantJSON(header http.Header) error {
	kind, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	charset, given := params["charset"]
	if err != nil || kind != "application/json" || given && !strings.EqualFold(charset, "utf-8") {
		return newProblem(http.StatusUnsupportedMediaType, "unsupported-media-type", "the body must be JSON, with Content-Type: application/json")
	}
	return nil
}

// readJSON parses a JSON text, which must be UTF-8 without duplicate keys.
func readJSON(body []byte) (any, error) {
	if !utf8.Valid(body) {
		return nil, badRequest("the body is not valid UTF-8")
	}
	value, err := expression.DecodeExact(body)
	if err != nil {
		return nil, badRequest("the body: %v", err)
	}
	return value, nil
}

// readObject parses a JSON object; an empty body counts as an empty object.
func readObject(body []byte) (map[string]any, error) {
	if len(body) == 0 {
		return map[string]any{}, nil
	}
	value, err := readJSON(body)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, badRequest("the body must be a JSON object, not a %s", expression.TypeName(value))
	}
	return object, nil
}

// admitObject admits a request whose body is a JSON object, from a caller or the owner of a token.
func (s *Server) admitObject(w http.ResponseWriter, r *http.Request, sender string) (object map[string]any, leave func(), err error) {
	if r.ContentLength != 0 {
		if err := wantJSON(r.Header); err != nil {
			return nil, nil, err
		}
	}
	body, leave, err := s.admitRequest(w, r, admission{arrivals: s.arrivals, slots: s.requests, sender: sender, most: MaxBody})
	if err != nil {
		return nil, nil, err
	}
	if object, err = readObject(body); err != nil {
		leave()
		return nil, nil, err
	}
	return object, leave, nil
}
