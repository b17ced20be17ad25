package format_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities/format"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// FuzzRows: no bytes of any format end the worker, packed or not, and rows that are read from a place are those behind it.
func FuzzRows(f *testing.F) {
	texts := []string{
		"", "id,note\n1,\"a, \"\"b\"\"\r\nsecond\"\r\n2,\n\n3,é\n", "sep=;\na;b\n1;2\n", "\uFEFFa,b\n1\n", "a\n\"open", "a\rb\r", "a\ncaf\xe9\n", "\xff\xfea\x00\n\x001\x00\n\x00",
		"{\"id\": 1}\n\n[2, 2.50]\nnull\n{", `{"data": {"items": [{"id": 1}, 2, [3]], "items": 4}}`, "[1, 2, 3", "[1e400, -0, 9007199254740993]",
		"<a><h>1</h><b id='1'>x</b>\n<b>y</b><c/></a>", "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a><b>&x;</b></a>", "<a><b>",
	}
	for _, text := range texts {
		f.Add([]byte(text))
		f.Add([]byte(tooltest.Gzip(text)))
		f.Add([]byte(tooltest.Gzip(text)[:10]))
		f.Add([]byte(zstandard(f, text)))
		f.Add([]byte(tooltest.Zip(f, [2]string{"a", text})))
	}
	paths := map[string][]string{format.JSON: {"data", "items"}, format.XML: {"a", "b"}}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, as := range format.Streamed {
			for _, path := range [][]string{nil, paths[as]} {
				source := &format.RowSource{
					Content: textSource{strings.NewReader(string(content))}, Size: int64(len(content)), What: "it", Format: as, Kind: interpreter.KindTool, Class: interpreter.ClassFinal,
					Temporary: func() (*os.File, error) { return os.CreateTemp(t.TempDir(), "") },
				}
				checkPlaces(t, source, format.Options{Rows: path})
			}
		}
	})
}

// checkPlaces reads rows, and those behind the first again.
func checkPlaces(t *testing.T, source *format.RowSource, options format.Options) {
	t.Helper()
	const most, limit = 1000, 1 << 16
	var all []any
	var behind *interpreter.SourcePlace
	var ended error
	for row, err := range source.ReadRows(t.Context(), options, limit, nil) {
		if ended = err; err != nil || len(all) > most {
			break
		}
		if all = append(all, row.Value); len(all) == 1 {
			behind = source.PlaceBehind(row, 1)
		}
	}
	if behind == nil || len(all) > most {
		return
	}
	var rest []any
	for row, err := range source.ReadRows(t.Context(), options, limit, behind) {
		if err != nil {
			require.Error(t, ended)
			break
		}
		rest = append(rest, row.Value)
	}
	require.Equal(t, all[1:], append([]any{}, rest...))
}
