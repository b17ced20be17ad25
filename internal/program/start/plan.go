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
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/workflows/protocol"
)

// Plan is a run that may start.
type Plan struct {
	WorkflowID string
	Playbook   string // its name
	// Summary and Details are what Temporal's UI shows of the run from its start to its end.
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
}

// NewID makes up the workflow ID of a run.
func NewID(book *playbook.Playbook) string {
	return book.Name + "-" + strings.ToLower(rand.Text()[:6])
}

// LeastAttributes returns the search attributes without which a run gets none.
func LeastAttributes() []string {
	return []string{protocol.StatusAttribute, protocol.PlaybookAttribute, protocol.OriginAttribute}
}

// useAttributes sets the search attributes that the namespace knows. The server refuses the run
// until LeastAttributes, and others that were added with them, can be used; an attribute that
// was added alone is first set in the next run.
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

// withExpectation returns a memo with the expectation of the plan, which lists read.
func (p *Plan) withExpectation(memo map[string]any) map[string]any {
	if p.Expect == 0 {
		return memo
	}
	with := map[string]any{protocol.ExpectMemo: p.Expect.Seconds()}
	for name, value := range memo {
		if name != protocol.ExpectMemo {
			with[name] = value
		}
	}
	return with
}

// searchAttributes returns the search attributes that the run starts with; none where its
// namespace has none.
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

// attributeLabels returns the labels that fit a search attribute, each as name=value.
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

// Priority returns the priority of the run. Unless it shares a fairness key, the run has its own.
// Temporal passes it on to all workflows and activities of the run.
func (p *Plan) Priority() temporal.Priority {
	priority := p.Fairness
	priority.FairnessKey = cmp.Or(priority.FairnessKey, FairnessKey(p.WorkflowID))
	return priority
}

// MaxFairnessKey is how many bytes of a fairness key Temporal accepts; it refuses the start of
// a run with a longer one.
const MaxFairnessKey = 64

// FairnessKey returns the ID of a run. One that is too long keeps its beginning, for
// people, and a hash that distinguishes it from others with the same beginning.
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

// Texts of the details of a run. Temporal refuses summaries of more than 400 bytes and
// details of more than 20,000.
const (
	shownKeys  = 30 // of the workload
	shownKey   = 40 // runes of one of them
	shownProse = 3000
)

// DetailsMarkdown say what a run runs, in Markdown: the playbook, the names of its
// workload's keys, never their values, and what the author says of it.
func DetailsMarkdown(book *playbook.Playbook, workload any, said string) string {
	details := protocol.DescribeRun(book) + "\n"
	given, _ := workload.(map[string]any)
	keys := slices.Sorted(maps.Keys(expression.Merge(book.Workload, given).(map[string]any))) // Merge of maps gives a map
	if len(keys) > 0 {
		shown := lists.Map(keys[:min(len(keys), shownKeys)], func(key string) string { return source.Code(key, shownKey) })
		details += "\nWorkload: " + strings.Join(shown, ", ")
		if more := len(keys) - shownKeys; more > 0 {
			details += fmt.Sprintf(" and %d more", more)
		}
		details += "\n"
	}
	if said != "" {
		details += "\n" + source.ProseText(source.Cut(said, shownProse)) + "\n"
	}
	return details
}
