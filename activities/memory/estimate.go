package memory

import (
	"bytes"
	"encoding/json"
)

// jsonEstimate is the estimated size of decoded JSON.
type jsonEstimate struct {
	bytes int64 // bytes, or more
	least int   // bytes of JSON it will be again, or less, where no map has a key twice
}

// What a decoded value takes in bytes: a map with its first entries, the place
// of an entry, a list, the place of an element while it is read and afterwards,
// a text beside its bytes, and a number.
const (
	MapBytes     = 336
	EntryBytes   = 64
	listBytes    = 40
	elementBytes = 48
	TextBytes    = 32
	numberBytes  = 16
)

// estimateJSON reads JSON once, whether it is valid or not.
func estimateJSON(body []byte) jsonEstimate {
	e := jsonEstimate{bytes: elementBytes}
	for i := 0; i < len(body); {
		c := body[i]
		i++
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		case '"':
			i = e.countText(body, i)
			continue
		case '{':
			e.bytes += MapBytes
		case '[':
			e.bytes += listBytes
		case ':':
			e.bytes += EntryBytes
		case ',':
			e.bytes += elementBytes
		case '}', ']':
		default:
			i = e.countWord(body, i)
		}
		e.least++
	}
	return e
}

// countText counts a text whose opening quote is before i, and returns its end.
func (e *jsonEstimate) countText(body []byte, i int) int {
	start := i
	for i < len(body) && body[i] != '"' {
		if body[i] == '\\' {
			i++
		}
		i++
	}
	end := min(i, len(body))
	const shrinks = len(`\u0000`) - 1 // to one byte
	e.bytes += TextBytes + int64(end-start)
	e.least += end - start + len(`""`) - shrinks*bytes.Count(body[start:end], []byte(`\u`))
	return end + 1
}

// countWord counts a number or a word that begins before i, and returns its end.
func (e *jsonEstimate) countWord(body []byte, i int) int {
	start := i
	for i < len(body) && body[i] > ',' && body[i] != ':' && body[i] != ']' && body[i] != '}' {
		i++
	}
	const short = 18 // digits of what is kept as a machine number
	e.bytes += numberBytes
	if i-start > short {
		e.bytes += int64(i - start)
	}
	return i
}

// ValueBytes is about what a decoded value takes, in bytes.
func ValueBytes(value any) int64 {
	switch v := value.(type) {
	case string:
		return TextBytes + int64(len(v))
	case json.Number:
		return TextBytes + int64(len(v))
	case map[string]any:
		bytes := int64(MapBytes)
		for name, member := range v {
			bytes += EntryBytes + int64(len(name)) + ValueBytes(member)
		}
		return bytes
	case []any:
		bytes := int64(listBytes)
		for _, element := range v {
			bytes += elementBytes + ValueBytes(element)
		}
		return bytes
	}
	return numberBytes
}
