package memory_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities/memory"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// TestEstimatesOfJSON: what is acquired is as much as the value takes, and
// what is refused for its size would have been too large.
func TestEstimatesOfJSON(t *testing.T) { // it looks at what this process has allocated
	for name, element := range map[string]string{
		"numbers": "1", "large numbers": "1234567", "longer numbers": strings.Repeat("7", 40), "floats": "1.25e+10",
		"words": "null", "texts": `"a"`, "longer texts": `"` + strings.Repeat("x", 100) + `"`, "escapes": `"\u0041\u0042\n\\u0041"`,
		"umlauts": `"üüü"`, "empty lists": "[]", "lists": "[1,2,3]", "empty maps": "{}", "small maps": `{"a":1}`,
		"rows":      `{"id": 12345, "name": "Ana Lima", "dose": 2.5, "active": true}`,
		"wide rows": `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"l":12}`,
		"nested":    `{"a":{"b":{"c":[[["x"]]]}}}`,
	} {
		body := []byte("[" + strings.Repeat(element+", ", 20_000) + element + "]")
		bytes, least := memory.EstimateJSON(body)

		var before, after runtime.MemStats

		runtime.GC()
		runtime.ReadMemStats(&before)

		v, err := expression.Decode(body)
		require.NoError(t, err)
		runtime.GC()
		runtime.ReadMemStats(&after)

		size := interpreter.EncodedSize(v)
		require.LessOrEqual(t, least, size, name)
		require.LessOrEqual(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), bytes, name)
		runtime.KeepAlive(v)
	}
}
