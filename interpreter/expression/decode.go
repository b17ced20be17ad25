package expression

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads one JSON text into a canonical value. Text behind it, nesting
// of more than 1000 levels, and what is not JSON are errors; so are numbers of
// more than 1000 digits, whose error wraps ErrLongNumber. A key that stands twice
// has its last value, and bytes that are not UTF-8 become U+FFFD, as in
// encoding/json.
func Decode(data []byte) (any, error) {
	decoder, _ := decoders.Get().(*jsontext.Decoder)
	decoder.Reset(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	defer func() {
		decoder.Reset(noText)
		decoders.Put(decoder)
	}()
	v, err := (&reader{decoder: decoder}).value(0)
	if errors.Is(err, io.EOF) {
		return nil, errors.New("not JSON: the text is empty")
	}
	if err != nil {
		return nil, located(err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not JSON: there is more text behind the value")
	}
	return v, nil
}

// decoders are used again, and hold no text meanwhile.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

var noText = new(bytes.Buffer)

// located says where a text is not JSON, without the keys that lead there.
func located(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return fmt.Errorf("not JSON: %w at byte %d", syntax.Err, syntax.ByteOffset)
	}
	return err
}

// reader makes canonical values of what its decoder reads.
type reader struct {
	decoder *jsontext.Decoder
	// stack holds the elements of open lists, so that each can be made at its size.
	stack []any
	// known are keys read before: the rows of a page share theirs.
	known [64]struct{ quoted, text string }
	// unquoted is the last text that was not written as it is.
	unquoted []byte
}

// value reads one value; like is how many entries it probably has if it is a map.
func (r *reader) value(like int) (any, error) {
	if r.decoder.StackDepth() > maxDepth {
		return nil, errDepth
	}
	switch r.decoder.PeekKind() {
	case jsontext.KindBeginObject:
		return r.object(like)
	case jsontext.KindBeginArray:
		return r.list()
	}
	raw, err := r.decoder.ReadValue()
	if err != nil {
		return nil, err
	}
	switch raw.Kind() {
	case jsontext.KindString:
		return string(r.text(raw)), nil
	case jsontext.KindNumber:
		return r.number(raw)
	case jsontext.KindNull:
		return nil, nil
	default:
		return raw.Kind() == jsontext.KindTrue, nil
	}
}

// mostAlike bounds how many entries a map is made for because another has them,
// so that a large one and many that are empty take no more than was estimated.
const mostAlike = 28

func (r *reader) list() (any, error) {
	start, like := len(r.stack), 0 // the rows of a page are alike
	if _, err := r.decoder.ReadToken(); err != nil {
		return nil, err
	}
	for r.decoder.PeekKind() != jsontext.KindEndArray {
		v, err := r.value(like)
		if err != nil {
			return nil, err
		}
		if row, ok := v.(map[string]any); ok {
			like = min(len(row), mostAlike)
		}
		r.stack = append(r.stack, v)
	}
	list := make([]any, len(r.stack)-start)
	copy(list, r.stack[start:])
	r.stack = r.stack[:start]
	_, err := r.decoder.ReadToken()
	return list, err
}

func (r *reader) object(like int) (any, error) {
	if _, err := r.decoder.ReadToken(); err != nil {
		return nil, err
	}
	object := make(map[string]any, like)
	for r.decoder.PeekKind() != jsontext.KindEndObject {
		quoted, err := r.decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		key := r.key(quoted)
		if object[key], err = r.value(0); err != nil { // the last of several wins
			return nil, err
		}
	}
	_, err := r.decoder.ReadToken()
	return object, err
}

// key is what a quoted key means, which may have been read before.
func (r *reader) key(quoted []byte) string {
	place := &r.known[(len(quoted)*7+int(quoted[len(quoted)/2])+31*int(quoted[len(quoted)-2]))%len(r.known)]
	if place.quoted != string(quoted) {
		place.quoted, place.text = string(quoted), string(r.text(quoted))
	}
	return place.text
}

// text is what a quoted text means.
func (r *reader) text(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return quoted[1 : len(quoted)-1]
	}
	r.unquoted, _ = jsontext.AppendUnquote(r.unquoted[:0], quoted) // the error is of what becomes U+FFFD
	return r.unquoted
}

// number makes a number of what is one. Most are short whole numbers.
func (r *reader) number(digits []byte) (any, error) {
	if len(digits) > maxDigits {
		if err := CheckDigits(string(digits)); err != nil {
			return nil, fmt.Errorf("at byte %d: %w", r.decoder.InputOffset()-int64(len(digits)), err)
		}
	}
	if !slices.ContainsFunc(digits, func(c byte) bool { return c == '.' || c > '9' }) {
		if n, err := strconv.Atoi(string(digits)); err == nil {
			return n, nil
		}
	}
	return numberFromText(string(digits)), nil
}
