package postgres

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"reprise/activities/sqltool"
	"reprise/interpreter/expression"
)

// parameterText is a parameter as the server's input function reads it; nil is
// NULL. Lists are array literals where an array is expected, else JSON.
func parameterText(value any, isArray bool, element uint32) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		return []byte(v), nil
	case []any:
		if isArray {
			return []byte(arrayLiteral(v, element == pgtype.JSONOID || element == pgtype.JSONBOID)), nil
		}
		return expression.Encode(v)
	case map[string]any:
		return expression.Encode(v)
	}
	return []byte(expression.Text(value)), nil
}

var arrayEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// arrayLiteral is a list in PostgreSQL's array syntax. Lists in it are further
// dimensions, unless the elements are JSON.
func arrayLiteral(list []any, jsonElements bool) string {
	parts := make([]string, len(list))
	for i, item := range list {
		nested, isList := item.([]any)
		switch {
		case item == nil:
			parts[i] = "NULL"
		case isList && !jsonElements:
			parts[i] = arrayLiteral(nested, false)
		case jsonElements:
			encoded, err := expression.Encode(item)
			if err != nil {
				encoded = []byte(expression.Text(item))
			}
			parts[i] = `"` + arrayEscapes.Replace(string(encoded)) + `"`
		default:
			parts[i] = `"` + arrayEscapes.Replace(expression.Text(item)) + `"`
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// arrayElement is the type of an array's elements.
func arrayElement(types *pgtype.Map, oid uint32) (element uint32, isArray bool) {
	known, ok := types.TypeForOID(oid)
	if !ok {
		return 0, false
	}
	codec, ok := known.Codec.(*pgtype.ArrayCodec)
	if !ok || codec.ElementType == nil || codec.ElementType.OID == pgtype.BoxOID {
		return 0, false // box is the only type whose elements ; parts
	}
	return codec.ElementType.OID, true
}

// resultValue makes a canonical value of a column's text. What has no better
// form stays the text the server wrote.
func resultValue(types *pgtype.Map, oid uint32, column []byte) any {
	if column == nil {
		return nil
	}
	text := string(column)
	if read := resultReaders[oid]; read != nil {
		if v, ok := read(text); ok {
			return v
		}
	}
	if element, ok := arrayElement(types, oid); ok {
		if list, ok := parseArray(text, func(item string) any { return resultValue(types, element, []byte(item)) }); ok {
			return list
		}
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// resultReaders read the text of a type; false is one that they cannot read.
var resultReaders = map[uint32]func(text string) (any, bool){
	pgtype.BoolOID:        func(text string) (any, bool) { return text == "t", true },
	pgtype.Int2OID:        intValue,
	pgtype.Int4OID:        intValue,
	pgtype.Int8OID:        intValue,
	pgtype.OIDOID:         intValue,
	pgtype.NumericOID:     func(text string) (any, bool) { return numericValue(text), true },
	pgtype.Float4OID:      func(text string) (any, bool) { return sqltool.FloatValue(text), true },
	pgtype.Float8OID:      func(text string) (any, bool) { return sqltool.FloatValue(text), true },
	pgtype.JSONOID:        jsonValue,
	pgtype.JSONBOID:       jsonValue,
	pgtype.TimestamptzOID: func(text string) (any, bool) { return timestamptzValue(text), true },
	pgtype.ByteaOID:       byteaValue,
	voidOID:               func(string) (any, bool) { return nil, true },
}

// voidOID is the type of functions that give nothing, such as pg_sleep.
const voidOID = 2278

func intValue(text string) (any, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil
}

func jsonValue(text string) (any, bool) {
	v, err := expression.Decode([]byte(text))
	return v, err == nil
}

// byteaValue is base64 of what the server writes in hex.
func byteaValue(text string) (any, bool) {
	digits, isHex := strings.CutPrefix(text, `\x`)
	data, err := hex.DecodeString(digits)
	return base64.StdEncoding.EncodeToString(data), isHex && err == nil
}

// numericValue keeps every digit: a number where one holds it exactly, else
// text.
func numericValue(text string) any {
	whole, fraction, hasFraction := strings.Cut(text, ".")
	if !hasFraction || strings.Trim(fraction, "0") == "" {
		if v, err := expression.Decode([]byte(whole)); err == nil {
			return v
		}
		return text // NaN, Infinity, and more digits than a number may have
	}
	short := strings.TrimRight(text, "0")
	f, err := strconv.ParseFloat(short, 64)
	if err != nil || strconv.FormatFloat(f, 'f', -1, 64) != short {
		return text
	}
	return f
}

// timestamptzValue is RFC 3339 in UTC; infinity and years before Christ stay
// as they are.
func timestamptzValue(text string) any {
	for _, layout := range []string{
		"2006-01-02 15:04:05.999999999-07", "2006-01-02 15:04:05.999999999-07:00", "2006-01-02 15:04:05.999999999-07:00:00",
	} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC().Format(time.RFC3339Nano)
		}
	}
	return text
}

// parseArray reads PostgreSQL's array syntax. It gives false for text that is
// none.
func parseArray(text string, element func(string) any) ([]any, bool) {
	if strings.HasPrefix(text, "[") { // bounds: [0:2]={…}
		_, after, found := strings.Cut(text, "=")
		if !found {
			return nil, false
		}
		text = after
	}
	p := &arrayParser{text: text, element: element}
	list, ok := p.list()
	return list, ok && p.at == len(text)
}

type arrayParser struct {
	text    string
	at      int
	element func(string) any
}

func (p *arrayParser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *arrayParser) list() ([]any, bool) {
	if p.peek() != '{' {
		return nil, false
	}
	p.at++
	list := []any{}
	if p.peek() == '}' {
		p.at++
		return list, true
	}
	for {
		item, ok := p.item()
		if !ok {
			return nil, false
		}
		list = append(list, item)
		sep := p.peek()
		p.at++
		switch sep {
		case '}':
			return list, true
		case ',':
		default:
			return nil, false
		}
	}
}

func (p *arrayParser) item() (any, bool) {
	switch p.peek() {
	case '{':
		return p.list()
	case '"':
		return p.quoted()
	}
	start := p.at
	for p.at < len(p.text) && p.text[p.at] != ',' && p.text[p.at] != '}' {
		p.at++
	}
	word := p.text[start:p.at]
	if word == "NULL" {
		return nil, true
	}
	return p.element(word), true
}

func (p *arrayParser) quoted() (any, bool) {
	var item strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch p.text[p.at] {
		case '\\':
			p.at++
			item.WriteByte(p.peek())
		case '"':
			p.at++
			return p.element(item.String()), true
		default:
			item.WriteByte(p.text[p.at])
		}
	}
	return nil, false
}
