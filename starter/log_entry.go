package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/internal/base/terminal"
)

// logEntry is a line of a worker's log.
type logEntry struct {
	raw    []byte // one JSON object
	fields map[string]any
}

// parseLog reads a line. Text before the object was added by the log's keeper.
func parseLog(line []byte) (logEntry, bool) {
	start := bytes.IndexByte(line, '{')
	if start < 0 {
		return logEntry{}, false
	}
	entry := logEntry{raw: bytes.TrimSpace(line[start:])}
	decoder := json.NewDecoder(bytes.NewReader(entry.raw))
	decoder.UseNumber()
	if decoder.Decode(&entry.fields) != nil || decoder.More() {
		return logEntry{}, false
	}
	return entry, true
}

// text is a field as text, "" where it is not there.
func (e logEntry) text(name string) string {
	switch value := e.fields[name].(type) {
	case nil:
		return ""
	case string:
		return value
	case json.Number:
		return value.String()
	default:
		encoded, _ := json.Marshal(value)
		return string(encoded)
	}
}

// about reports whether a line is about a run or a child of it. The SDK has words of
// its own for that.
func (e logEntry) about(run string) bool {
	for _, name := range []string{"run", "workflow", "WorkflowID"} {
		if id := e.text(name); id == run || strings.HasPrefix(id, run+"/") {
			return true
		}
	}
	return false
}

// identity are the fields that name the attempt of a line, with those of
// the SDK. They are shown in few words, or not at all.
var identity = []string{
	"time", "level", "msg", "run", "workflow", "step", "visit", "index", "page", "attempt", "sink", "operation_key", "call",
	"Namespace", "TaskQueue", "WorkerID", "WorkflowType", "WorkflowID", "RunID", "Attempt", "ActivityID", "ActivityType",
}

// format is a line for eyes: time, level, attempt, message and what else it says; what
// has several lines is below.
func (e logEntry) format() string {
	at := e.text("time")
	if parsed, err := time.Parse(time.RFC3339Nano, at); err == nil {
		at = parsed.UTC().Format("2006-01-02 15:04:05.000Z")
	}
	var b, below strings.Builder
	fmt.Fprintf(&b, "%s %-5s ", at, e.text("level"))
	if where := e.where(); where != "" {
		b.WriteString(where + ": ")
	}
	b.WriteString(e.text("msg"))
	for _, name := range slices.Sorted(maps.Keys(e.fields)) {
		if slices.Contains(identity, name) {
			continue
		}
		switch value := strings.TrimRight(e.text(name), "\n"); {
		case strings.Contains(value, "\n") || name == "output":
			for line := range strings.SplitSeq(value, "\n") {
				below.WriteString("  " + terminal.Visible(line) + "\n")
			}
		default:
			b.WriteString(", " + name + ": " + value)
		}
	}
	return terminal.OneLine(b.String()) + "\n" + below.String()
}

// where is the attempt in few words: fetch#2[13] page 2, attempt 3.
func (e logEntry) where() string {
	where := e.text("step")
	if where == "" {
		return ""
	}
	if visit := e.text("visit"); visit != "" && visit != "1" {
		where += "#" + visit
	}
	if index := e.text("index"); index != "" {
		where += "[" + index + "]"
	}
	if sink := e.text("sink"); sink != "" {
		where += " sink " + sink
	}
	if page := e.text("page"); page != "" && page != "1" {
		where += " page " + page + ","
	}
	if attempt := e.text("attempt"); attempt != "" {
		where += " attempt " + attempt
	}
	return where
}
