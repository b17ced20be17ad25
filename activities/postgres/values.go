package postgres

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter/expression"
)

// parameterText returns a parameter as the server's input function reads it; nil is NULL. Lists are
// array literals if an array is expected, else JSON.
func parameterText(value any, isArray bool, element uint32) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case sqltool.Bytes:
		return []byte(v.PostgresHex()), nil
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

// arrayLiteral returns a list in PostgreSQL's array syntax. Lists in it are further
// dimensions, unless the elements are JSON.
func arrayLiteral(list []any, jsonElements bool) string {
	parts := make([]string, len(list))
	for i, item := range list {
		nested, isList := item.([]any)
		data, isBytes := item.(sqltool.Bytes)
		switch {
		case isBytes:
			parts[i] = `"\` + data.PostgresHex() + `"`
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

// arrayElement returns the type of an array's elements.
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
// form stays the text the server wrote. An error is JSON of which a value would lose something, or a text that is not UTF-8.
func resultValue(types *pgtype.Map, oid uint32, column []byte) (any, error) {
	if column == nil {
		return nil, nil
	}
	text := string(column)
	if err := sqltool.CheckUTF8(text); err != nil {
		return nil, err
	}
	if isJSON(oid) {
		return documentValue(text)
	}
	if read := resultReaders[oid]; read != nil {
		if v, ok := read(text); ok {
			return v, nil
		}
	}
	if element, ok := arrayElement(types, oid); ok {
		var lossy error
		list, ok := parseArray(text, func(item string) any {
			value, err := resultValue(types, element, []byte(item))
			lossy = cmp.Or(lossy, err)
			return value
		})
		if ok {
			return list, lossy
		}
	}
	return text, nil
}

// isJSON reports whether a type is one of JSON.
func isJSON(oid uint32) bool { return oid == pgtype.JSONOID || oid == pgtype.JSONBOID }

// documentValue returns the value of a column of JSON. A number that is too long is its text; a document with one would be a text among documents.
func documentValue(text string) (any, error) {
	value, err := expression.DecodeExact([]byte(text))
	nested := strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
	switch {
	case err == nil:
		return value, nil
	case errors.Is(err, expression.ErrInexact), errors.Is(err, expression.ErrLongNumber) && nested:
		return nil, err
	}
	return text, nil
}

// resultReaders read the text of a type; false is one that they cannot read.
var resultReaders = map[uint32]func(text string) (any, bool){
	pgtype.BoolOID:        func(text string) (any, bool) { return text == "t", true },
	pgtype.Int2OID:        intValue,
	pgtype.Int4OID:        intValue,
	pgtype.Int8OID:        intValue,
	pgtype.OIDOID:         intValue,
	pgtype.NumericOID:     numberValue, // with every digit; NaN, Infinity, and more digits than a number may have stay text
	pgtype.Float4OID:      func(text string) (any, bool) { return sqltool.FloatValue(text), true },
	pgtype.Float8OID:      func(text string) (any, bool) { return sqltool.FloatValue(text), true },
	pgtype.TimestamptzOID: func(text string) (any, bool) { return timestamptzValue(text), true },
	pgtype.ByteaOID:       byteaValue,
	voidOID:               func(string) (any, bool) { return nil, true },
}

// voidOID is the type of functions without a result, such as pg_sleep.
const voidOID = 2278

func intValue(text string) (any, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil
}

func numberValue(text string) (any, bool) {
	v, err := expression.Decode([]byte(text))
	return v, err == nil
}

// byteaValue is base64 of what the server writes in hex, or, by bytea_output, with escapes.
func byteaValue(text string) (any, bool) {
	if strings.HasPrefix(text, `\x`) {
		data, is := sqltool.ReadBytes(text)
		return data.Base64(), is
	}
	data := make(sqltool.Bytes, 0, len(text))
	for rest := text; rest != ""; {
		if escaped, is := strings.CutPrefix(rest, `\\`); is {
			data, rest = append(data, '\\'), escaped
			continue
		}
		octal, is := strings.CutPrefix(rest, `\`)
		if !is {
			data, rest = append(data, rest[0]), rest[1:]
			continue
		}
		const digits = 3
		code, err := strconv.ParseUint(octal[:min(digits, len(octal))], 8, 8)
		if err != nil {
			return nil, false
		}
		data, rest = append(data, byte(code)), octal[digits:]
	}
	return data.Base64(), true
}

// bytesParameter returns a text, or a list of texts, as a parameter of bytea.
func bytesParameter(value any) (any, error) {
	switch v := value.(type) {
	case string:
		data, is := sqltool.ReadBytes(v)
		if !is {
			return nil, tool.Errorf("a parameter is bytea, and %s; for the bytes of a text write convert_to({{ … }}, 'UTF8')", sqltool.BytesText(v))
		}
		return data, nil
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			var err error
			if list[i], err = bytesParameter(element); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return value, nil
}

// timestamptzValue is RFC 3339 in UTC; infinity and years BC are left unchanged.
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

// parseArray reads PostgreSQL's array syntax. It returns false for a text that is not an array.
func parseArray(text string, element func(string) any) ([]any, bool) {
	if strings.HasPrefix(text, "[") { // bounds: [0:2]={…}
		_, after, found := strings.Cut(text, "=")
		if !found {
			return nil, false
		}
		text = after
	}
	p := &arrayParser{text: text, element: element}
	list, ok := p.parseList()
	return list, ok && p.at == len(text)
}

type arrayParser struct {
	text    string
	at      int
	element func(string) any
}

func (p *arrayParser) peekByte() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *arrayParser) parseList() ([]any, bool) {
	if p.peekByte() != '{' {
		return nil, false
	}
	p.at++
	list := []any{}
	if p.peekByte() == '}' {
		p.at++
		return list, true
	}
	for {
		item, ok := p.parseItem()
		if !ok {
			return nil, false
		}
		list = append(list, item)
		sep := p.peekByte()
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

func (p *arrayParser) parseItem() (any, bool) {
	switch p.peekByte() {
	case '{':
		return p.parseList()
	case '"':
		return p.parseQuoted()
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

func (p *arrayParser) parseQuoted() (any, bool) {
	var item strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch p.text[p.at] {
		case '\\':
			p.at++
			item.WriteByte(p.peekByte())
		case '"':
			p.at++
			return p.element(item.String()), true
		default:
			item.WriteByte(p.text[p.at])
		}
	}
	return nil, false
}
