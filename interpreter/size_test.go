package interpreter_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// crossing are the types whose sizes are asked for.
var crossing = []reflect.Type{
	reflect.TypeFor[interpreter.Task](), reflect.TypeFor[interpreter.Script](), reflect.TypeFor[interpreter.Carried](), reflect.TypeFor[interpreter.CallState](),
	reflect.TypeFor[interpreter.CallResult](), reflect.TypeFor[interpreter.ErrorObject](), reflect.TypeFor[interpreter.Outcome](),
	reflect.TypeFor[interpreter.ToolInput](), reflect.TypeFor[interpreter.ToolResult](), reflect.TypeFor[interpreter.LoopResult](),
	reflect.TypeFor[interpreter.DriveInput](), reflect.TypeFor[interpreter.DriveOutput](), reflect.TypeFor[interpreter.CheckInput](),
	reflect.TypeFor[interpreter.Routing](), reflect.TypeFor[interpreter.Limiter](), reflect.TypeFor[odd](), reflect.TypeFor[twice](),
}

// odd has what no struct of a boundary has yet.
type odd struct {
	Plain    string
	Exact    string  `json:"exact<&>"`
	Renamed  float64 `json:"renamed,omitempty"`
	Quoted   int     `json:"quoted,string"`
	Any      any     `json:"any"`
	Bytes    []byte  `json:"bytes"`
	Hidden   string  `json:"-"`
	_        int
	Small    float32          `json:"small"`
	Count    uint16           `json:"count"`
	Array    [3]int           `json:"array,omitempty"`
	ByNumber map[int]string   `json:"by_number"`
	Raw      json.RawMessage  `json:"raw,omitempty"`
	Times    []time.Time      `json:"times"`
	At       *time.Time       `json:"at,omitzero"`
	Wait     time.Duration    `json:"wait,omitempty"`
	Values   expression.Value `json:"values"`
}

// twice has one name in two places, which encoding/json has rules for.
type twice struct {
	interpreter.LoopStats
	Total string `json:"total"`
}

// TestCountedIsEncoded: what is counted is what is written, for every type that
// crosses a boundary, whatever it holds.
func TestCountedIsEncoded(t *testing.T) {
	t.Parallel()
	made := maker{rand.New(rand.NewPCG(1, 1))}
	failed := 0
	for range 6_000 {
		kind := crossing[made.IntN(len(crossing))]
		value := reflect.New(kind)
		made.fill(value.Elem(), 0)
		for _, v := range []any{value.Interface(), value.Elem().Interface()} {
			encoded, err := json.Marshal(v)
			size, counted := interpreter.CountEncoded(v)
			require.Equal(t, err != nil, counted != nil, "%s: %v, %v", kind, err, counted)
			if err != nil {
				failed++
				require.Zero(t, interpreter.EncodedSize(v))
				continue
			}
			require.Equal(t, len(encoded), size, "%s: %s", kind, encoded)
		}
	}
	require.Less(t, failed, 6_000, "most can be written")
	require.NotZero(t, failed)
}

// maker makes values at random.
type maker struct{ *rand.Rand }

func (m maker) fill(v reflect.Value, depth int) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		if m.IntN(2) == 0 {
			zone := time.FixedZone("x", m.IntN(40_000)-20_000)
			v.Set(reflect.ValueOf(time.Unix(m.Int64N(4e9), m.Int64N(1e9)).In([]*time.Location{time.UTC, zone}[m.IntN(2)])))
		}
		return
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"a" : "<b>"}`))
		return
	case v.Type() == reflect.TypeFor[interpreter.Outcome]():
		v.Field(0).Set(reflect.ValueOf(expression.Of(m.value(0))).Field(0))
		m.fill(v.Field(1), depth+1)
		m.fill(v.Field(2), depth+1)
		return
	}
	few := 0
	if depth < 6 {
		few = m.IntN(4)
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() && m.IntN(4) > 0 {
				m.fill(field, depth+1)
			}
		}
	case reflect.Pointer:
		if few > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			m.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if m.IntN(3) > 0 {
			v.Set(reflect.MakeSlice(v.Type(), few, few))
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			m.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		if m.IntN(3) > 0 {
			v.Set(reflect.MakeMap(v.Type()))
		}
		for range few {
			if v.IsNil() {
				break
			}
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			m.fill(key, depth+1)
			m.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Interface:
		if value := m.value(0); value != nil {
			v.Set(reflect.ValueOf(value))
		}
	case reflect.String:
		v.SetString(m.text())
	case reflect.Bool:
		v.SetBool(m.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(m.Int64() >> m.IntN(64) * int64(1-2*m.IntN(2)))
	case reflect.Uint8, reflect.Uint16, reflect.Uint64:
		v.SetUint(uint64(m.IntN(256)))
	case reflect.Float64, reflect.Float32:
		v.SetFloat(m.float())
	default:
		panic("no value of " + v.Type().String())
	}
}

func (m maker) float() float64 {
	switch m.IntN(60) {
	case 0:
		return math.NaN()
	case 1, 2, 3:
		return 0
	}
	return (m.Float64() - 0.5) * math.Pow(10, float64(m.IntN(60)-30))
}

func (m maker) text() string {
	pieces := []string{"a", "row", "é", "日本", "\u2028", "\u2029", "<b>&", `"\`, "\x00\x1f\x7f", "\n\t\b\f\r", "\xff", "\xe2\x80", "�", "😀"}
	var text strings.Builder
	for range m.IntN(5) {
		text.WriteString(pieces[m.IntN(len(pieces))])
	}
	return text.String()
}

// value is mostly canonical.
func (m maker) value(depth int) any {
	switch choice := m.IntN(12); {
	case choice < 4 && depth < 4:
		list := make([]any, m.IntN(4))
		for i := range list {
			list[i] = m.value(depth + 1)
		}
		return list
	case choice < 6 && depth < 4:
		members := map[string]any{}
		for range m.IntN(4) {
			members[m.text()] = m.value(depth + 1)
		}
		return members
	case choice == 6:
		return nil
	case choice == 7:
		return m.IntN(1000) - 500
	case choice == 8:
		return (m.Float64() - 0.5) * 1e9
	case choice == 9:
		return json.Number(fmt.Sprint(m.Uint64(), "000"))
	case choice == 10 && m.IntN(20) == 0:
		return map[string]string{"not": m.text()}
	case choice == 11:
		return m.IntN(2) == 0
	}
	return m.text()
}

// TestCountedAtItsEdges: the values that are written in a way of their own.
func TestCountedAtItsEdges(t *testing.T) {
	t.Parallel()
	var none *interpreter.ErrorObject
	far := time.Date(12_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, v := range map[string]any{
		"nothing": nil, "nil pointer": none, "nil list": []interpreter.LoopError(nil), "empty list": []interpreter.LoopError{},
		"nil map": map[string]int(nil), "free": expression.Of([]any{1}), "nothing free": expression.Value{}, "text": "<\xff>",
		"large": expression.Of(strings.Repeat("é<", 100_000)), "fields left out": interpreter.CallState{},
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
