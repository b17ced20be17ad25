package format

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSpareRows: rows of CSV are made of rows that were put back, and are never more than were in use at once. Rows of other formats are not held.
func TestSpareRows(t *testing.T) {
	t.Parallel()
	const rows, batch = 1000, 10
	texts := map[string]string{}
	for i := range rows {
		texts[CSV] += fmt.Sprintf("%d,a\n", i)
		texts[JSONL] += fmt.Sprintf("{\"id\": \"%d\", \"name\": \"a\"}\n", i)
	}
	texts[CSV] = "id,name\n" + texts[CSV]
	for format, want := range map[string]int{CSV: batch, JSONL: 0} {
		spare := &SpareRows{}
		var list []any
		count := 0
		for row, err := range (Options{Format: format, Spare: spare}).streamRows(textPart{Reader: io.Reader(strings.NewReader(texts[format])), line: 1}, 1<<20) {
			require.NoError(t, err)
			require.Equal(t, map[string]any{"id": fmt.Sprint(count), "name": "a"}, row.Value)
			count++
			if list = append(list, row.Value); len(list) == batch {
				spare.Put(list)
				list = nil
			}
		}
		require.Equal(t, rows, count)
		require.Len(t, spare.rows, want, format)
	}
}
