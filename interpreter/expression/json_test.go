package expression_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

// reference reads JSON by encoding/json, as Decode promises to.
func reference(data []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()

	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}

	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more text")
	}
	return expression.Canonical(v)
}

func requireAsReference(t *testing.T, data []byte) {
	t.Helper()

	want, wantErr := reference(data)
	got, err := expression.Decode(data)
	require.Equal(t, wantErr == nil, err == nil, "%q: %v, %v", data, wantErr, err)
	require.Equal(t, want, got, "%q", data)

	if err == nil {
		requireWritten(t, got)
	}
}

// requireWritten compares what Encode gives with encoding/json.
func requireWritten(t *testing.T, v any) {
	t.Helper()

	var want bytes.Buffer

	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	require.NoError(t, encoder.Encode(v))

	got, err := expression.Encode(v)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSuffix(want.String(), "\n"), string(got))

	within, err := json.Marshal(expression.Of(v))
	require.NoError(t, err)
	size, err := expression.Of(v).EncodedSize()
	require.NoError(t, err)
	require.Equal(t, len(within), size, "%s", within)
}

var jsonTexts = []string{
	`null`, `true`, `false`, `nul`, `truex`, ` [ ] `, `{ }`, "\t[\r\n1 , 2]\n", `[1,]`, `[,1]`, `[1 2]`, `{"a":1,}`, `{"a" 1}`, `{a:1}`,
	`{"a":1,"a":2}`, `{"":{"":0}}`, `[[[],{}],[{"a":[]}]]`, `{"a":[1,{"b":2}],"c":3}`, `]`, `}`, `[`, `{`, `{"a"`, `{"a":`, `"`, `"a`,
	`0`, `-0`, `00`, `01`, `-`, `--1`, `+1`, `1.`, `.1`, `1.0`, `1.5e`, `1e+`, `1e5`, `1E-5`, `-1.25e+2`, `1e400`, `-1e-400`, `0.0`, `1x`,
	`999999999999999999`, `1000000000000000000`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`,
	`18446744073709551616`, `123456789012345678901234567890`, `1e20`, `1e21`, `0.000001`, `0.0000001`, `1.7976931348623157e308`, `12345678901234567890.5`,
	`"\"\\\/\b\f\n\r\t"`, `"\u00e9\u20AC"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\ud83d\u0041"`, `"\ud83d\ud83d\ude00"`, `"\ud83dx"`,
	`"\u12"`, `"\u12g4"`, `"\x"`, `"\`, `"\u`, "\"\x01\"", "\"\x7f\"", "\"a\xffb\"", "\"\\n\xff\"", "\"\xe2\x80\xa8<&>\"", "\"\xed\xa0\x80\"", "{\"k\xff\":1}",
	`[{"b":1,"a":2},{"a":3,"b":[{"a":4,"b":5},{"b":6,"a":7}]},{"a":8,"c":9},{"c":1,"d":2},{"a":3},{},null,{"":4},{"b":5,"a":{"d":6,"c":7}}]`,
	"\ufeff1", "\x00", `1 2`, `{} {}`, `"a"b`, "\"\xc3\\u00a9\"",
}

func TestDecodeAsEncodingJSON(t *testing.T) {
	t.Parallel()

	for _, text := range jsonTexts {
		requireAsReference(t, []byte(text))
		requireAsReference(t, []byte(`{"a":[`+text+`,1],"a b":`+text+`}`))
	}

	random := rand.New(rand.NewPCG(3, 4))

	const marks = "\"\\{}[]:,.0-e u\n\xff"

	for range 20_000 {
		v, err := expression.Canonical(randomValue(random, 4))
		require.NoError(t, err)
		requireWritten(t, v)

		data, err := json.MarshalIndent(v, "", " ")
		require.NoError(t, err)
		requireAsReference(t, data)

		data[random.IntN(len(data))] = marks[random.IntN(len(marks))]
		requireAsReference(t, data)
	}
}

func TestEncodeWhatIsNotCanonical(t *testing.T) {
	t.Parallel()

	for text, v := range map[string]any{
		`null`:              []any(nil),
		`{"a":null}`:        map[string]any{"a": map[string]any(nil)},
		`[7,["a"]]`:         []any{int8(7), []string{"a"}},
		`{"a":[1],"b":"c"}`: map[string]any{"b": expression.Of("c"), "a": json.RawMessage(` [1] `)},
		`0`:                 json.Number(""),
	} {
		data, err := expression.Encode(v)
		require.NoError(t, err)
		require.Equal(t, text, string(data))
	}

	circle := map[string]any{}
	circle["me"] = []any{circle}

	for _, v := range []any{math.NaN(), []any{math.Inf(1)}, json.Number("1x"), map[string]any{"a": func() {}}, circle} {
		_, err := expression.Encode(v)
		require.ErrorContains(t, err, "cannot be written as JSON")
	}
}

// TestPagesAreReadAtOnce: a row costs two pieces for the map, each text and the
// fraction, and nothing for its keys.
func TestPagesAreReadAtOnce(t *testing.T) { // it counts allocations
	page := rowsOf(100)
	most := (2+2+2+2)*100 + 40

	require.LessOrEqual(t, testing.AllocsPerRun(10, func() {
		_, _ = expression.Decode(page)
	}), float64(most))

	v := decode(t, string(page))

	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { _, _ = expression.Encode(v) }), 1.0)
}

// rowsOf is a page of JSON.
func rowsOf(n int) []byte {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id":%d,"patient_id":"p%03d","name":"Zoë \"Z\" %d","score":%d.5}`, i%200, i, i, i)
	}
	return []byte(`{"data":[` + strings.Join(rows, ",") + `],"paging":{"hasMore":true,"page":1}}`)
}

// FuzzDecode looks for texts that Decode reads, or Encode writes, in another
// way than encoding/json.
func FuzzDecode(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text))
	}

	f.Fuzz(func(t *testing.T, data []byte) { requireAsReference(t, data) })
}

func BenchmarkJSON(b *testing.B) {
	page := rowsOf(100)
	v := decode(b, string(page))

	for name, run := range map[string]func(){
		"Decode": func() { _, _ = expression.Decode(page) },
		"Encode": func() { _, _ = expression.Encode(v) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(page)))

			for b.Loop() {
				run()
			}
		})
	}
}
