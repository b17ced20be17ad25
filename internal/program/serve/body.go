package serve

import (
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"reprise/interpreter/expression"
)

// MaxBody is how many bytes a request's body may have: it is read into memory before its
// signature is known, and becomes the workload of a run, in history.
const MaxBody = 1 << 20

func tooLarge() *Problem {
	return newProblem(http.StatusRequestEntityTooLarge, "too-large", "the body may have at most %d bytes", MaxBody)
}

// wantJSON refuses bodies that do not say that they are JSON.
func wantJSON(header http.Header) error {
	kind, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	charset, given := params["charset"]
	if err != nil || kind != "application/json" || given && !strings.EqualFold(charset, "utf-8") {
		return newProblem(http.StatusUnsupportedMediaType, "unsupported-media-type", "the body must be JSON, with Content-Type: application/json")
	}
	return nil
}

// readJSON reads a JSON text: UTF-8, and no key twice in a map.
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

// readObject reads a JSON object; no body at all is an empty one.
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

// admitObject admits a request whose body is a JSON object: of a caller, or of the
// owner of a token.
func (s *Server) admitObject(w http.ResponseWriter, r *http.Request, sender string) (object map[string]any, leave func(), err error) {
	if r.ContentLength != 0 {
		if err := wantJSON(r.Header); err != nil {
			return nil, nil, err
		}
	}
	body, leave, err := s.admitRequest(w, r, s.arrivals, s.requests, sender)
	if err != nil {
		return nil, nil, err
	}
	if object, err = readObject(body); err != nil {
		leave()
		return nil, nil, err
	}
	return object, leave, nil
}
