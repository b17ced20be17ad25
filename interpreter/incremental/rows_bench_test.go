package incremental_test

import (
	"testing"

	"reprise/interpreter/incremental"
)

// BenchmarkOf distinguishes the rows of a page.
func BenchmarkOf(b *testing.B) {
	for name, rows := range map[string]*incremental.RowIdentity{
		"key":  {CursorPath: "updated_at", Type: incremental.Time, Key: []string{"id"}},
		"row":  {CursorPath: "updated_at", Type: incremental.Time},
		"path": {CursorPath: "meta.updated_at", Type: incremental.Time, Key: []string{"meta.id"}},
	} {
		row := map[string]any{
			"id": 123456, "updated_at": "2024-05-06T07:08:09.123Z", "name": "Margarete", "amount": 12.5, "city": "Aachen",
			"meta": map[string]any{"id": 123456, "updated_at": "2024-05-06T07:08:09.123Z"},
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			positions := make([]byte, 0, 16)
			for b.Loop() {
				positions = positions[:0]
				rows.IdentifyRow(row, row, &positions)
			}
		})
	}
}
