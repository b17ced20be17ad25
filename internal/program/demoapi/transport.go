package demoapi

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
)

// answerBody answers with a JSON string that is exactly "bytes" bytes long, quotes included (1,024 by default). With
// gzip=1 it is compressed, to about a thousandth, whatever the client accepts.
func (s *Server) answerBody(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	size := p.intValue("bytes", 1024, 2, 1<<30)
	if p.rejectBad(w) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("gzip") != "1" {
		w.Header().Set("Content-Length", strconv.Itoa(size))
		writeString(w, size)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	compressed := gzip.NewWriter(w)
	writeString(compressed, size)
	_ = compressed.Close()
}

// writeString writes a JSON string of size bytes in pieces, and stops when the client disconnects.
func writeString(w io.Writer, size int) {
	piece := bytes.Repeat([]byte{'x'}, 64<<10)
	if _, err := w.Write([]byte{'"'}); err != nil {
		return
	}
	for left := size - 2; left > 0; left -= len(piece) {
		if _, err := w.Write(piece[:min(left, len(piece))]); err != nil {
			return
		}
	}
	_, _ = w.Write([]byte{'"'})
}

// isTroubled counts a request and reports whether it is among the first "times" of its path in the scenario; times 0,
// the default, means always.
func (s *Server) isTroubled(p *params) bool {
	times := p.intValue("times", 0, 0, 1_000_000)
	nth := s.scenarioOf(p.r).countUp("trouble " + p.r.URL.Path)
	return times == 0 || nth <= times
}

// truncateBody announces more bytes than it sends, then closes the connection.
func (s *Server) truncateBody(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	troubled := s.isTroubled(p)
	if p.rejectBad(w) {
		return
	}
	if !troubled {
		respondJSON(w, http.StatusOK, object{"ok": true})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, `{"data":[1,2`)
}

// dropConnection closes the connection without a response.
func (s *Server) dropConnection(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	troubled := s.isTroubled(p)
	if p.rejectBad(w) {
		return
	}
	if troubled {
		panic(http.ErrAbortHandler) // net/http closes the connection, quietly
	}
	respondJSON(w, http.StatusOK, object{"ok": true})
}

// notJSON answers with HTML that is declared as JSON.
func (s *Server) notJSON(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "<html><body>Bad gateway</body></html>")
}
