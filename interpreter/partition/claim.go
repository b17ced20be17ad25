package partition

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Names of the update with which a backfill claims partitions, and of the activity that sends it. They are part of
// histories, so they never change.
const (
	ClaimUpdate   = "claim"
	ClaimActivity = "claim_partitions"
)

// Holder is a run that claims partitions. Kept in workflow history.
type Holder struct {
	Run   string `json:"run"`   // workflow ID
	First string `json:"first"` // run ID of its first history
}

// BackfillClaim is the set of partitions that a backfill runs; other backfills cannot run them at the same time.
// Kept in workflow history.
type BackfillClaim struct {
	Holder

	Playbook string `json:"playbook"`
	// Spans are pairs of Unix times in seconds, from and to, sorted; Keys are the partitions of a list.
	Spans []int64  `json:"spans,omitempty"`
	Keys  []string `json:"keys,omitempty"`
}

// Selection has the partitions that a backfill must run, and their claim. Kept in workflow history.
type Selection struct {
	Keys  []string      `json:"keys"`
	Claim BackfillClaim `json:"claim"`
}

// Bounds of claims.
const (
	// maxClaimSpans bounds the spans of one claim, because claims are in the snapshot with which a ledger continues
	// as new. A claim with more spans becomes a single span, which excludes other backfills from more than
	// necessary.
	maxClaimSpans = 500
	// maxClaims bounds the claims of a Ledger, which runs that ended without releasing theirs would otherwise fill.
	maxClaims = 100
)

// ClaimOf returns the claim of sorted partitions.
func ClaimOf(playbook string, all []Partition) BackfillClaim {
	c := BackfillClaim{Playbook: playbook}
	for _, p := range all {
		switch last := len(c.Spans) - 1; {
		case p.Start.IsZero():
			c.Keys = append(c.Keys, p.Key)
		case last > 0 && c.Spans[last] == p.Start.Unix():
			c.Spans[last] = p.End.Unix()
		default:
			c.Spans = append(c.Spans, p.Start.Unix(), p.End.Unix())
		}
	}
	if len(c.Spans) > 2*maxClaimSpans {
		c.Spans = []int64{c.Spans[0], c.Spans[len(c.Spans)-1]}
	}
	return c
}

// Check returns an error for a claim that no backfill makes.
func (c BackfillClaim) Check() error {
	switch {
	case c.Run == "" || c.First == "":
		return errors.New("a claim needs a run")
	case len(c.Spans)%2 != 0 || len(c.Spans) > 2*maxClaimSpans || !slices.IsSorted(c.Spans):
		return fmt.Errorf("a claim of %d times that are no spans in their order", len(c.Spans))
	case len(c.Keys) > MaxListed:
		return fmt.Errorf("a claim of %d partitions of a list, more than %d", len(c.Keys), MaxListed)
	}
	return nil
}

// HoldsPartition reports whether the claim includes a partition.
func (c BackfillClaim) HoldsPartition(p Partition) bool {
	return !c.OverlapWith(ClaimOf(c.Playbook, []Partition{p})).isEmpty()
}

// OverlapWith returns the partitions that two claims have in common.
func (c BackfillClaim) OverlapWith(other BackfillClaim) BackfillClaim {
	both := BackfillClaim{Holder: c.Holder, Playbook: c.Playbook}
	for i, k := 0, 0; i < len(c.Spans) && k < len(other.Spans); {
		from, to := max(c.Spans[i], other.Spans[k]), min(c.Spans[i+1], other.Spans[k+1])
		if from < to {
			both.Spans = append(both.Spans, from, to)
		}
		if c.Spans[i+1] <= other.Spans[k+1] {
			i += 2
		} else {
			k += 2
		}
	}
	for _, key := range c.Keys {
		if slices.Contains(other.Keys, key) {
			both.Keys = append(both.Keys, key)
		}
	}
	return both
}

func (c BackfillClaim) isEmpty() bool { return len(c.Spans) == 0 && len(c.Keys) == 0 }

// ClaimText describes the claimed partitions, "" for none.
func (c BackfillClaim) ClaimText() string {
	const shown = 5
	words := slices.Clone(c.Keys)
	for i := 0; i < len(c.Spans); i += 2 {
		words = append(words, "from "+timeText(c.Spans[i])+" to "+timeText(c.Spans[i+1]))
	}
	more := ""
	if n := len(words) - shown; n > 0 {
		words, more = words[:shown], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(words, ", ") + more
}

func timeText(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }

// ClaimRequest requests a claim, or releases it. Kept in workflow history.
type ClaimRequest struct {
	BackfillClaim

	Release bool `json:"release,omitempty"`
	// Ended are runs with claims that have ended without releasing them.
	Ended []Holder `json:"ended,omitempty"`
}

// Conflict says why a claim was refused: another run has it. Kept in workflow history.
type Conflict struct {
	Run     string `json:"run"` // workflow ID
	Overlap string `json:"overlap"`
}

// RecordClaim records a claim and returns nil, or returns the claims of others that prevent it. Repeating a claim changes
// nothing.
func (l *Ledger) RecordClaim(request ClaimRequest) []BackfillClaim {
	l.claims = slices.DeleteFunc(l.claims, func(c BackfillClaim) bool {
		return c.Holder == request.Holder || slices.Contains(request.Ended, c.Holder)
	})
	if request.Release {
		return nil
	}
	if others := l.ClaimsOverlapping(request.BackfillClaim); len(others) > 0 {
		return others
	}
	if len(l.claims) >= maxClaims {
		return slices.Clone(l.claims)
	}
	l.claims = append(l.claims, request.BackfillClaim)
	slices.SortFunc(l.claims, func(a, b BackfillClaim) int { return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.First, b.First)) })
	return nil
}

// ClaimsOverlapping returns the claims that share a partition with another one.
func (l *Ledger) ClaimsOverlapping(of BackfillClaim) []BackfillClaim {
	var others []BackfillClaim
	for _, c := range l.claims {
		if !c.OverlapWith(of).isEmpty() {
			others = append(others, c)
		}
	}
	return others
}
