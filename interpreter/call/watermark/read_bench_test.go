package watermark_test

import (
	"fmt"
	"testing"
	"time"

	"reprise/interpreter/call/watermark"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// BenchmarkRead reads the cursors of a page of 100 rows.
func BenchmarkRead(b *testing.B) {
	rows := make([]any, 100)
	begin := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "at": begin.Add(time.Duration(i) * time.Second).Format(time.RFC3339Nano), "name": fmt.Sprint("name ", i), "score": 1.5}
	}
	section := &playbook.Incremental{CursorPath: "at", Type: incremental.Time, Ascending: true}
	b.ReportAllocs()
	for b.Loop() {
		var w watermark.Watermark
		if _, failure := w.Read(section, rows, time.Now()); failure != nil {
			b.Fatal(failure)
		}
	}
}
