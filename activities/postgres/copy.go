package postgres

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter/expression"
)

// copyFrom sends the rows to a table by COPY, and says how many it took.
func copyFrom(ctx context.Context, tx pgx.Tx, table string, i *insertion) (int64, error) {
	source := &copySource{insertion: i}
	names := sqltool.QuoteNames(i.write.Columns)
	for at := range i.partial {
		names += ", " + hasColumn(at)
	}
	tag, err := tx.Conn().PgConn().CopyFrom(ctx, source, "COPY "+table+" ("+names+") FROM STDIN")
	if source.err != nil {
		return 0, source.err
	}
	return tag.RowsAffected(), err
}

// copySource produces rows in the text format of COPY while they are read.
type copySource struct {
	*insertion

	next  int    // row
	ready []byte // of buffer, not yet read
	// buffer is used again, for some rows at a time.
	buffer []byte
	err    error
}

// Read reads the next bytes.
func (s *copySource) Read(p []byte) (n int, err error) {
	const enough = 64 << 10
	if len(s.ready) == 0 {
		s.buffer = s.buffer[:0]
		for s.next < len(s.write.Rows) && len(s.buffer) < enough {
			if s.err = s.appendRow(); s.err != nil {
				return 0, s.err
			}
			s.next++
		}
		if s.ready = s.buffer; len(s.ready) == 0 {
			return 0, io.EOF
		}
	}
	n = copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

func (s *copySource) appendRow() error {
	row := s.write.Rows[s.next]
	for i, name := range s.write.Columns {
		if i > 0 {
			s.buffer = append(s.buffer, '\t')
		}
		value := row[name]
		text, isNull, err := columnText(value, s.forms[i].text)
		switch {
		case err != nil:
			return unencodableError(s.write, s.next, name, err)
		case hasNUL(value):
			return nulError(s.write, s.next, name)
		case isNull:
			s.buffer = append(s.buffer, `\N`...)
		default:
			s.buffer = appendCopyText(s.buffer, text)
		}
	}
	for _, name := range s.partial {
		s.buffer = appendHas(append(s.buffer, '\t'), row, name)
	}
	s.buffer = append(s.buffer, '\n')
	return nil
}

// columnText returns a value as a column of the form reads it.
func columnText(value any, form textForm) (text string, isNull bool, err error) {
	switch v := value.(type) {
	case nil:
		return "", true, nil
	case string:
		if form == jsonText {
			quoted, err := jsontext.AppendQuote(nil, v)
			return string(quoted), false, err
		}
		return v, false, nil
	case sqltool.Bytes:
		return v.PostgresHex(), false, nil
	case []any:
		if form == arrayText {
			return arrayLiteral(v, false), false, nil
		}
	}
	encoded, err := expression.Encode(value)
	return string(encoded), false, err
}

// appendCopyText escapes a text for COPY.
func appendCopyText(out []byte, text string) []byte {
	begin := 0
	for at := range len(text) {
		var escaped string
		switch text[at] {
		default:
			continue
		case '\\':
			escaped = `\\`
		case '\t':
			escaped = `\t`
		case '\n':
			escaped = `\n`
		case '\r':
			escaped = `\r`
		}
		out = append(append(out, text[begin:at]...), escaped...)
		begin = at + 1
	}
	return append(out, text[begin:]...)
}

// canCopyAsText reports whether the values of array columns have a literal with the same meaning as
// their JSON: texts, which are literals themselves, and lists without empty lists.
func canCopyAsText(w *sqltool.TableWrite, forms []columnForm) bool {
	for i, name := range w.Columns {
		if forms[i].text != arrayText {
			continue
		}
		for _, row := range w.Rows {
			switch v := row[name].(type) {
			case nil, string:
			case []any:
				if hasEmptyList(v) {
					return false
				}
			default:
				return false
			}
		}
	}
	return true
}

func hasEmptyList(list []any) bool {
	return slices.ContainsFunc(list, func(element any) bool {
		nested, isList := element.([]any)
		return isList && (len(nested) == 0 || hasEmptyList(nested))
	})
}

// unsendableError is the error of a value of a column that cannot be sent to the server.
type unsendableError struct {
	error

	column string
}

// unencodableError returns the error of a value that JSON has no form for.
func unencodableError(w *sqltool.TableWrite, row int, column string, err error) error {
	return &unsendableError{tool.Errorf("%s, column %q, cannot be written as JSON: %w", w.RowText(w.OriginalNumber(row)), column, err), column}
}

func (e *unsendableError) Unwrap() error { return e.error }

// refuseNUL names the place of a text that PostgreSQL has no way to keep.
func refuseNUL(w *sqltool.TableWrite) error {
	for i, row := range w.Rows {
		for _, name := range w.Columns {
			if hasNUL(row[name]) {
				return nulError(w, i, name)
			}
		}
	}
	return nil
}

// hasNUL reports whether a value is a text with the character U+0000.
func hasNUL(value any) bool {
	text, isText := value.(string)
	return isText && strings.IndexByte(text, 0) >= 0
}

// nulError is the error of a text with the character U+0000.
func nulError(w *sqltool.TableWrite, row int, column string) error {
	return &unsendableError{tool.Errorf("%s for table %q, column %q: the text has the character U+0000, which PostgreSQL cannot store",
		w.RowText(w.OriginalNumber(row)), w.Shown, column), column}
}
