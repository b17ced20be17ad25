package serve

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"reprise/interpreter/expression"
)

// MaxBody is how many bytes a request's body may have.
const MaxBody = 1 << 20

// readBody reads a body of at most MaxBody bytes.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, problem(http.StatusUnsupportedMediaType, "unsupported-media-type", "send the body as it is, without Content-Encoding")
	}
	if r.ContentLength > MaxBody {
		return nil, tooLarge()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, problem(http.StatusRequestTimeout, "request-timeout", "the body did not arrive in time").with("Connection", "close")
	case err != nil:
		return nil, badRequest("the body cannot be read").with("Connection", "close")
	}
	return body, nil
}

func tooLarge() *Problem {
	return problem(http.StatusRequestEntityTooLarge, "too-large", "a body may have %d bytes", MaxBody).with("Connection", "close")
}

// wantJSON refuses bodies that do not say that they are JSON.
func wantJSON(header http.Header) error {
	kind, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	charset, given := params["charset"]
	if err != nil || kind != "application/json" || given && !strings.EqualFold(charset, "utf-8") {
		return problem(http.StatusUnsupportedMediaType, "unsupported-media-type", "the body must be JSON, with Content-Type: application/json")
	}
	return nil
}

// readJSON reads a JSON text: UTF-8, and no key twice in a map.
func readJSON(body []byte) (any, error) {
	if !utf8.Valid(body) {
		return nil, badRequest("the body is not UTF-8")
	}
	value, err := expression.Decode(body)
	if err != nil {
		return nil, badRequest("the body: %v", err)
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(body))
	if _, err := decoder.ReadValue(); err != nil {
		return nil, badRequest("the body: %v", err)
	}
	return value, nil
}

// readObject reads a JSON object; no body at all is an empty one.
func readObject(w http.ResponseWriter, r *http.Request) (map[string]any, error) {
	if r.ContentLength != 0 {
		if err := wantJSON(r.Header); err != nil {
			return nil, err
		}
	}
	body, err := readBody(w, r)
	if err != nil || len(body) == 0 {
		return map[string]any{}, err
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
