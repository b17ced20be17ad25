package interpreter_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
)

// TestCountedAtItsEdges: the values that are written in a way of their own.
func TestCountedAtItsEdges(t *testing.T) {
	t.Parallel()
	var none *interpreter.ErrorObject
	far := time.Date(12_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, v := range map[string]any{
		"nothing": nil, "nil pointer": none, "nil list": []interpreter.LoopError(nil), "empty list": []interpreter.LoopError{},
		"nil map": map[string]int(nil), "free": expression.Of([]any{1}), "nothing free": expression.Value{}, "text": "<\xff>",
		"large": expression.Of(strings.Repeat("é<", 100_000)), "fields left out": call.State{},
		"records": []struct {
			A any `json:"a"`
		}{{nil}, {none}, {expression.Of(nil)}, {[]any{}}},
	} {
		encoded, err := json.Marshal(v)
		require.NoError(t, err, name)
		require.Equal(t, len(encoded), interpreter.EncodedSize(v), name)
	}
	for name, v := range map[string]any{
		"a year of five digits": interpreter.CallMeta{StartedAt: far}, "no number": expression.Of(math.Inf(1)), "a function": func() {},
	} {
		_, err := interpreter.CountEncoded(v)
		require.Error(t, err, name)
	}
}

// beside is what a struct may hold beside free values.
type beside struct {
	Any    any             `json:"any"`
	Raw    json.RawMessage `json:"raw,omitempty"`
	Number json.Number     `json:"number,omitempty"`
	Map    map[string]any  `json:"map"`
	List   []any           `json:"list"`
	Bytes  []byte          `json:"bytes"`
	Float  float32         `json:"float"`
	Quoted int             `json:"quoted,string"`
	At     time.Time       `json:"at,omitzero"`
}

// TestSizeIsThatOfTheConverter: what is counted is what Temporal's data converter
// sends, whatever the value is and wherever it lies, and an error where it has one.
func TestSizeIsThatOfTheConverter(t *testing.T) {
	t.Parallel()
	made := maker{rand.New(rand.NewPCG(7, 21))}
	refused := 0
	for range 4_000 {
		value := made.value(0)
		meta := interpreter.CallMeta{StartedAt: time.Unix(made.Int64N(4e9), made.Int64N(1e9)).UTC(), Attempts: made.IntN(9)}
		at := beside{Any: value, Float: float32(made.float()), Quoted: made.IntN(900) - 450, At: meta.StartedAt}
		if made.IntN(2) == 0 {
			at.Raw, at.Number = json.RawMessage(` {"a" : "<b>\u2028" , "c":[1 , 2]}`), "1e400"
			at.Map, at.List, at.Bytes = map[string]any{made.text(): value}, []any{}, []byte(made.text())
		}
		for _, v := range []any{
			[]any{value},
			at, &at, expression.Of(value),
			interpreter.Outcome{Data: value},
			&interpreter.Outcome{Data: value},
			interpreter.ToolResult{Data: expression.Of(value)},
			interpreter.CallResult{Data: expression.Of(value), Meta: meta},
			interpreter.ErrorObject{Message: made.text(), Body: expression.Of(value)},
		} {
			sent, err := converter.GetDefaultDataConverter().ToPayload(v)
			size, counted := interpreter.CountEncoded(v)
			require.Equal(t, err != nil, counted != nil, "%T: %v, %v", v, err, counted)
			if err != nil {
				refused++
				require.Zero(t, interpreter.EncodedSize(v))
				continue
			}
			require.Equal(t, len(sent.GetData()), size, "%T: %s", v, sent.GetData())
		}
	}
	require.Positive(t, refused)
	require.Less(t, refused, 4_000)
}

// maker makes values at random, of which few cannot be written.
type maker struct{ *rand.Rand }

func (m maker) value(depth int) any {
	switch choice := m.IntN(14); {
	case choice < 4 && depth < 4:
		list := make([]any, m.IntN(4))
		for i := range list {
			list[i] = m.value(depth + 1)
		}
		return list
	case choice < 7 && depth < 4:
		members := map[string]any{}
		for range m.IntN(4) {
			members[m.text()] = m.value(depth + 1)
		}
		return members
	case choice < 8:
		return []any{nil, true, false, map[string]any(nil), []any(nil), map[string]string(nil), map[string]int{}}[m.IntN(7)]
	case choice < 9:
		return m.Int() >> m.IntN(64) * (1 - 2*m.IntN(2))
	case choice < 10:
		return m.float()
	case choice < 11:
		return json.Number([]string{"-0", "1e400", "123456789012345678901234567890", "0.10", "1E+2"}[m.IntN(5)])
	case choice < 12:
		return json.RawMessage([]string{` [1 , "<&>"]`, `{"a":"\u2028\/"}`, `null`}[m.IntN(3)])
	case choice < 13 && m.IntN(40) == 0:
		return []any{json.Number("1x"), json.RawMessage("{"), func() {}, math.Inf(1)}[m.IntN(4)]
	}
	return m.text()
}

func (m maker) float() float64 {
	switch m.IntN(6) {
	case 0:
		return math.Copysign(0, -1)
	case 1:
		return []float64{1e20, 1e21, 1e-6, 9.9e-7, math.MaxFloat32, math.SmallestNonzeroFloat32}[m.IntN(6)]
	}
	return (m.Float64() - 0.5) * math.Pow(10, float64(m.IntN(60)-30))
}

func (m maker) text() string {
	pieces := []string{"a", "row", "é", "日本", "\u2028", "\u2029", "<b>&", `"\`, "\x00\x1f\x7f", "\n\t\b\f\r", "\xff", "\xe2\x80", "\ufffd", "😀"}
	var text strings.Builder
	for range m.IntN(5) {
		text.WriteString(pieces[m.IntN(len(pieces))])
	}
	return text.String()
}

// BenchmarkEncodedSize counts 64 MiB: rows, and one text.
func BenchmarkEncodedSize(b *testing.B) {
	rows := make([]any, 0, 500_000)
	for i, size := 0, 0; size < 64<<20; i++ {
		row := map[string]any{"id": i, "name": "row <b>of</b> a table", "note": strings.Repeat("x", 80), "price": 12.5, "open": i%2 == 0}
		rows, size = append(rows, row), size+interpreter.EncodedSize(row)+1
	}
	for name, v := range map[string]any{"rows": rows, "text": strings.Repeat("0123456789abcdef", 4<<20)} {
		for in, v := range map[string]any{"alone": expression.Of(v), "result": interpreter.CallResult{Data: expression.Of(v)}} {
			b.Run(name+"/"+in, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					interpreter.EncodedSize(v)
				}
			})
		}
	}
}
