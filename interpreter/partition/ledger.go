package partition

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"reprise/interpreter/expression"
)

// Names of the workflow that keeps the statuses of a playbook's partitions, of its update and its query, and of the
// activity that sends it a Note. They are part of histories, so they never change.
const (
	WorkflowName  = "PartitionsWorkflow"
	NoteUpdate    = "note"
	SnapshotQuery = "snapshot"
	NoteActivity  = "note_partition"
)

// WorkflowID returns the ID of the workflow that keeps the statuses of a playbook's partitions.
func WorkflowID(playbook string) string {
	return expression.BoundedID("reprise-partitions/" + url.PathEscape(playbook))
}

// Status is the status of a partition.
type Status string

// The statuses of partitions. Stale means done by a playbook with another identity.
const (
	Done    Status = "done"
	Failed  Status = "failed"
	Running Status = "running"
	Stale   Status = "stale"
	Missing Status = "missing"
)

// Statuses lists all statuses.
var Statuses = []Status{Done, Running, Failed, Stale, Missing}

// Note is a run's report about its partition: running, done, failed, or Missing if it ended as neither. Kept in
// workflow history.
type Note struct {
	Playbook  string    `json:"playbook"`
	Partition Partition `json:"partition"`
	Identity  string    `json:"identity"`
	Run       string    `json:"run"` // workflow ID
	Status    Status    `json:"status"`
}

// Check returns an error for a note that no run sends.
func (n Note) Check() error {
	p := n.Partition
	switch {
	case p.Key == "" || n.Identity == "" || n.Run == "":
		return errors.New("a note needs a partition, an identity and a run")
	case p.Start.IsZero() != p.End.IsZero() || !p.Start.IsZero() && !p.Start.Before(p.End):
		return fmt.Errorf("the partition %s is from %s to %s", p.Key, p.Start, p.End)
	case !slices.Contains([]Status{Running, Done, Failed, Missing}, n.Status):
		return fmt.Errorf("no run notes %q", n.Status)
	}
	return nil
}

// Bounds of a Ledger.
const (
	// maxSpans bounds the spans that a Ledger keeps, with similar neighbours merged: its snapshot has to fit into
	// one payload.
	maxSpans = 2 * Max
	// maxRunning bounds the runs that a Ledger remembers as running; the newest are kept.
	maxRunning = 2000
	// maxSnapshot bounds a snapshot when it is read, in bytes: a few compressed bytes from elsewhere could unpack
	// to any size.
	maxSnapshot = 32 << 20
)

// span is a period with one status, which may consist of many partitions.
type span struct {
	from, to int64 // Unix times in seconds
	identity string
	failed   bool
}

// listedPartition is the status of a partition of a list; kept in workflow history.
type listedPartition struct {
	Key      string `json:"key"`
	Identity string `json:"identity"`
	Failed   bool   `json:"failed,omitempty"`
}

// running is a run that has not reported its end; kept in workflow history.
type running struct {
	Key  string `json:"key"`
	From int64  `json:"from,omitempty"`
	Run  string `json:"run"`
}

// Ledger keeps the statuses of a playbook's partitions, as spans of time, so that thousands of done partitions take
// one entry. PartitionsWorkflow connects it to runs.
type Ledger struct {
	spans   []span // sorted, without overlaps
	listed  []listedPartition
	running []running
	claims  []BackfillClaim // of running backfills
}

// ApplyNote applies a run's report. Applying it again changes nothing.
func (l *Ledger) ApplyNote(note Note) error {
	l.running = slices.DeleteFunc(l.running, func(r running) bool { return r.Run == note.Run })
	p := note.Partition
	switch {
	case note.Status == Missing:
	case note.Status == Running:
		l.running = append(l.running, running{Key: p.Key, From: startOf(p), Run: note.Run})
		l.running = l.running[max(len(l.running)-maxRunning, 0):]
	case p.Start.IsZero():
		return l.listPartition(listedPartition{Key: p.Key, Identity: note.Identity, Failed: note.Status == Failed})
	default:
		return l.putSpan(span{p.Start.Unix(), p.End.Unix(), note.Identity, note.Status == Failed})
	}
	return nil
}

func startOf(p Partition) int64 {
	if p.Start.IsZero() {
		return 0
	}
	return p.Start.Unix()
}

func (l *Ledger) listPartition(next listedPartition) error {
	if at := slices.IndexFunc(l.listed, func(other listedPartition) bool { return other.Key == next.Key }); at >= 0 {
		l.listed[at] = next
		return nil
	}
	if len(l.listed) >= maxSpans/100 {
		return fmt.Errorf("%d partitions of lists are kept, and there is no room for another one", len(l.listed))
	}
	l.listed = append(l.listed, next)
	return nil
}

// putSpan replaces the status of a period.
func (l *Ledger) putSpan(next span) error {
	first, _ := slices.BinarySearchFunc(l.spans, next.from, func(s span, from int64) int { return cmp.Compare(s.to, from+1) })
	last := first
	var between []span
	for ; last < len(l.spans) && l.spans[last].from < next.to; last++ {
		s := l.spans[last]
		if s.from < next.from {
			between = append(between, span{s.from, next.from, s.identity, s.failed})
		}
	}
	between = append(between, next)
	if last > first && l.spans[last-1].to > next.to {
		s := l.spans[last-1]
		between = append(between, span{next.to, s.to, s.identity, s.failed})
	}
	if len(l.spans)+len(between)-(last-first) > maxSpans {
		return fmt.Errorf("%d spans of time are kept, and there is no room for another one", len(l.spans))
	}
	l.spans = slices.Replace(l.spans, first, last, between...)
	l.mergeSpans(first-1, first+len(between))
	return nil
}

// mergeSpans merges neighbours with the same status, in a range of indexes.
func (l *Ledger) mergeSpans(from, to int) {
	for i := min(to, len(l.spans)-1); i > max(from, 0); i-- {
		before, s := l.spans[i-1], l.spans[i]
		if before.to == s.from && before.identity == s.identity && before.failed == s.failed {
			l.spans[i-1].to = s.to
			l.spans = slices.Delete(l.spans, i, i+1)
		}
	}
}

// OpenRun returns the workflow ID of a run that has begun a partition and not reported its end; "" for none.
func (l *Ledger) OpenRun(p Partition) string {
	for _, r := range slices.Backward(l.running) {
		if r.Key == p.Key && r.From == startOf(p) {
			return r.Run
		}
	}
	return ""
}

// StatusOf returns the status of a partition for a playbook with an identity, regardless of running runs.
func (l *Ledger) StatusOf(p Partition, identity string) Status {
	if p.Start.IsZero() {
		at := slices.IndexFunc(l.listed, func(one listedPartition) bool { return one.Key == p.Key })
		if at < 0 {
			return Missing
		}
		return statusOf(l.listed[at].Failed, l.listed[at].Identity != identity)
	}
	start, end := p.Start.Unix(), p.End.Unix()
	at, _ := slices.BinarySearchFunc(l.spans, start, func(s span, from int64) int { return cmp.Compare(s.to, from+1) })
	failed, stale, known := false, false, start
	for ; at < len(l.spans) && l.spans[at].from < end; at++ {
		s := l.spans[at]
		failed, stale = failed || s.failed, stale || s.identity != identity
		if s.from > known && !failed {
			return Missing
		}
		known = s.to
	}
	if known < end && !failed {
		return Missing
	}
	return statusOf(failed, stale)
}

func statusOf(failed, stale bool) Status {
	switch {
	case failed:
		return Failed
	case stale:
		return Stale
	}
	return Done
}

// Len returns the number of entries.
func (l *Ledger) Len() int { return len(l.spans) + len(l.listed) + len(l.running) + len(l.claims) }

// snapshot is the stored form of a Ledger; kept in workflow history.
type snapshot struct {
	Identities []string `json:"identities,omitempty"`
	// Spans has four numbers for each span: the gap after the previous one, its length, the index of its identity,
	// and 1 if it failed.
	Spans   []int64           `json:"spans,omitempty"`
	Listed  []listedPartition `json:"listed,omitempty"`
	Running []running         `json:"running,omitempty"`
	Claims  []BackfillClaim   `json:"claims,omitempty"`
}

const perSpan = 4

// Snapshot encodes the ledger, compressed.
func (l *Ledger) Snapshot() ([]byte, error) {
	packed := snapshot{Listed: l.listed, Running: l.running, Claims: l.claims}
	end := int64(0)
	for _, s := range l.spans {
		identity := slices.Index(packed.Identities, s.identity)
		if identity < 0 {
			identity = len(packed.Identities)
			packed.Identities = append(packed.Identities, s.identity)
		}
		failed := int64(0)
		if s.failed {
			failed = 1
		}
		packed.Spans = append(packed.Spans, s.from-end, s.to-s.from, int64(identity), failed)
		end = s.to
	}
	var into bytes.Buffer
	writer, err := flate.NewWriter(&into, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(writer).Encode(packed); err != nil {
		return nil, err
	}
	err = writer.Close()
	return into.Bytes(), err
}

// ReadLedger decodes a snapshot; nil gives an empty Ledger. An error means that no Ledger has written it.
func ReadLedger(packed []byte) (*Ledger, error) {
	l := &Ledger{}
	if len(packed) == 0 {
		return l, nil
	}
	var read snapshot
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxSnapshot))
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		return nil, fmt.Errorf("read the partitions: %w", err)
	}
	end := int64(0)
	for i := 0; i+perSpan <= len(read.Spans); i += perSpan {
		gap, length, identity := read.Spans[i], read.Spans[i+1], read.Spans[i+2]
		if i > 0 && gap < 0 || length <= 0 || identity < 0 || identity >= int64(len(read.Identities)) {
			return nil, errors.New("read the partitions: their spans are not in order")
		}
		s := span{end + gap, end + gap + length, read.Identities[identity], read.Spans[i+3] == 1}
		l.spans, end = append(l.spans, s), s.to
	}
	l.listed, l.running, l.claims = read.Listed, read.Running, read.Claims
	return l, nil
}

// Describe describes the ledger in Markdown.
func (l *Ledger) Describe() string {
	const shown = 20
	var lines strings.Builder
	fmt.Fprintf(&lines, "%d spans of time, %d partitions of lists, %d runs\n", len(l.spans), len(l.listed), len(l.running))
	for _, s := range l.spans[max(len(l.spans)-shown, 0):] {
		word := Done
		if s.failed {
			word = Failed
		}
		fmt.Fprintf(&lines, "- %s to %s: %s, `%s`\n", timeText(s.from), timeText(s.to), word, s.identity)
	}
	for _, c := range l.claims[:min(len(l.claims), shown)] {
		fmt.Fprintf(&lines, "- claimed by `%s`: %s\n", c.Run, c.ClaimText())
	}
	return lines.String()
}
