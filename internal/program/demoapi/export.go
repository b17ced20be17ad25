package demoapi

import (
	"compress/gzip"
	"fmt"
	"net/http"

	"golang.org/x/text/encoding/charmap"
)

func (s *Server) addExports() {
	s.handleAPI("GET /api/v1/exports/users.csv.gz", s.exportUsers)
}

// exportUsers is a file as an old program makes it: CSV with semicolons in
// windows-1252, packed, in which "-" is no value.
func (s *Server) exportUsers(w http.ResponseWriter, r *http.Request) {
	if s.obstruct(w, &params{r: r}, 1, 0) {
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	packed := gzip.NewWriter(w)
	defer func() { _ = packed.Close() }() // whom it cannot be sent to has gone
	text := charmap.Windows1252.NewEncoder().Writer(packed)
	_, _ = fmt.Fprint(text, "id;name;left_at\r\n")
	for n := 1; n <= s.options.Items; n++ {
		left := "-"
		if n%5 == 0 {
			left = "2026-01-31"
		}
		_, _ = fmt.Fprintf(text, "%d;\"Müller; %02d\";%s\r\n", n, n, left)
	}
}
