package start

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.temporal.io/sdk/temporal"

	"reprise/internal/base/connect"
	"reprise/internal/observe/runs"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/workflows/protocol"
)

// Plan describes a run to start.
type Plan struct {
	WorkflowID string
	Playbook   string // its name
	// Summary and Details are what Temporal's UI shows about the run.
	Summary, Details string
	Input            protocol.Input
	Labels           map[string]string  // of the playbook; lists find the run by them
	Schedule         *playbook.Schedule // that the playbook has, nil for none
	Partitioned      bool               // each run is about a partition
	Memo             map[string]any     // kept with the run
	Expect           time.Duration      // in which the run should end, as its playbook says; 0 for no expectation
	Once             bool               // no run may ever have had the ID
	Codes            []string           // of the playbook, for which the starter of the run vouches
	Fairness         temporal.Priority  // as far as it is set
	Build            *runs.Build        // to which the run and its children are pinned; nil for the one that gets new runs
}

// NewID generates the workflow ID of a run.
func NewID(book *playbook.Playbook) string {
	return book.Name + "-" + strings.ToLower(rand.Text()[:6])
}

// LeastAttributes returns the search attributes without which a run gets no search attributes at all.
func LeastAttributes() []string {
	return []string{protocol.StatusAttribute, protocol.PlaybookAttribute, protocol.OriginAttribute}
}

// useAttributes enables the search attributes that the namespace has. The server refuses the run until
// LeastAttributes, and others that were added with them, are usable; an attribute that was added separately is first
// set in the next run.
func (p *Plan) useAttributes(known connect.Attributes) {
	p.Input.SearchAttributes = known.Has(LeastAttributes()...)
	has := func(name string) bool {
		alone := slices.Contains(known.Added, name) && !slices.Contains(known.Added, protocol.PlaybookAttribute)
		return p.Input.SearchAttributes && known.Has(name) && !alone
	}
	if !has(protocol.LabelsAttribute) {
		p.Labels = nil
	}
	p.Input.DeadLetters, p.Input.NextRetry = has(protocol.DeadLettersAttribute), has(protocol.NextRetryAttribute)
}

// initialMemo returns a memo with the plan's expected duration and its partition, which lists read.
func (p *Plan) initialMemo(memo map[string]any) map[string]any {
	if p.Expect == 0 && p.Input.Partition == "" {
		return memo
	}
	with := map[string]any{}
	maps.Copy(with, memo)
	if p.Expect != 0 {
		with[protocol.ExpectMemo] = p.Expect.Seconds()
	}
	if p.Input.Partition != "" {
		with[protocol.PartitionMemo] = p.Input.Partition
	}
	return with
}

// searchAttributes returns the run's initial search attributes; none if its namespace has none.
func (p *Plan) searchAttributes() temporal.SearchAttributes {
	if !p.Input.SearchAttributes {
		return temporal.SearchAttributes{}
	}
	name := temporal.NewSearchAttributeKeyKeyword(protocol.PlaybookAttribute)
	attributes := []temporal.SearchAttributeUpdate{name.ValueSet(p.Playbook)}
	if again := p.Input.Reprocess; again != nil {
		origin := temporal.NewSearchAttributeKeyKeyword(protocol.OriginAttribute)
		attributes = append(attributes, origin.ValueSet(again.Origin.WorkflowID))
	}
	if labels := p.attributeLabels(); len(labels) > 0 {
		attributes = append(attributes, temporal.NewSearchAttributeKeyKeywordList(protocol.LabelsAttribute).ValueSet(labels))
	}
	return temporal.NewSearchAttributes(attributes...)
}

// attributeLabels returns the labels that fit into a search attribute, each as name=value.
func (p *Plan) attributeLabels() []string {
	const most, longest = 50, 255 // labels, and bytes of one
	var all []string
	for _, name := range slices.Sorted(maps.Keys(p.Labels)) {
		if label := name + "=" + p.Labels[name]; len(label) <= longest && len(all) < most {
			all = append(all, label)
		}
	}
	return all
}

// Priority returns the priority of the run, which Temporal applies to all its workflows and activities. Unless the
// run shares a fairness key, it gets its own.
func (p *Plan) Priority() temporal.Priority {
	priority := p.Fairness
	priority.FairnessKey = cmp.Or(priority.FairnessKey, FairnessKey(p.WorkflowID))
	return priority
}

// MaxFairnessKey is the longest fairness key, in bytes; Temporal refuses to start a run with a longer one.
const MaxFairnessKey = 64

// FairnessKey returns a run's workflow ID, shortened if it is too long: its beginning, for people, and a hash that
// distinguishes it from others.
func FairnessKey(workflowID string) string {
	if len(workflowID) <= MaxFairnessKey {
		return workflowID
	}
	digest := sha256.Sum256([]byte(workflowID))
	hash := "~" + hex.EncodeToString(digest[:8])
	beginning := workflowID[:MaxFairnessKey-len(hash)]
	for !utf8.ValidString(beginning) { // it ends within a character
		beginning = beginning[:len(beginning)-1]
	}
	return beginning + hash
}

// Limits of a run's texts. Temporal refuses summaries of more than 400 bytes and details of more than 20,000.
const (
	shownKeys  = 30 // of the workload
	shownKey   = 40 // runes of one of them
	shownProse = 3000
)

// DetailsMarkdown describes a run in Markdown: the playbook, the names of the workload's keys but not their values,
// and the author's description.
func DetailsMarkdown(book *playbook.Playbook, workload any, said string) string {
	details := protocol.DescribeRun(book) + "\n"
	given, _ := workload.(map[string]any)
	keys := slices.Sorted(maps.Keys(expression.MergeMaps(book.Workload, given).(map[string]any))) // Merge of maps gives a map
	if len(keys) > 0 {
		shown := lists.Map(keys[:min(len(keys), shownKeys)], func(key string) string { return source.MarkdownCode(key, shownKey) })
		details += "\nWorkload: " + strings.Join(shown, ", ")
		if more := len(keys) - shownKeys; more > 0 {
			details += fmt.Sprintf(" and %d more", more)
		}
		details += "\n"
	}
	if said != "" {
		details += "\n" + source.ProseText(source.CutText(said, shownProse)) + "\n"
	}
	return details
}
