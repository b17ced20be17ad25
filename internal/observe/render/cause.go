package render

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// Cause is the reason why a run, or the first of its failed iterations, failed: the request, the response and the
// policy that decided.
type Cause struct {
	Step string // with its visit and the index of the iteration; "" where no step failed
	// Element is the element of the iteration; "" if the failure is not of an iteration.
	Element string
	Message string
	// Request is the URL, and Params are the parameters of the request as JSON; "" if unknown. Values of keys whose
	// names suggest secrets are masked.
	Request, Params string
	// Answer is the status and Headers are the headers of the response; empty if there was none.
	Answer  string
	Headers []string
	// Body is what the failure reported: a traceback, the output of a program, or the response body.
	Body Excerpt
	// Policy is the policy that decided and its decision; "" if none did.
	Policy string
	// Run is the workflow ID of the child run that failed, the deepest if it failed because of another, and RunError is the
	// first line of its error; "" if no child run did.
	Run, RunError string
	// RunStep is the step of Run that failed, with its visit and the index of the iteration; "" if unknown.
	RunStep string
	// RunTitle is by what people know Run, its workflow ID unless it is known to be the run of a partition.
	RunTitle string
	// Waits says that the step is retried, so that nothing else of the run reports the message.
	Waits bool
	// Marked is the last line of the playbook's file that a traceback names; 0 if there is none.
	Marked int
}

// Cause returns why the run, or the first of its failed iterations, failed; nil if neither did.
func (o EndedRun) Cause() *Cause {
	record, failure := o.failedVisit(), o.Result.Error
	for i := range o.Result.Steps {
		if loop := &o.Result.Steps[i]; record == nil && loop.Loop != nil && len(loop.Loop.Errors) > 0 {
			record = loop
		}
	}
	cause := &Cause{}
	if record != nil {
		cause.Step = StepName(*record)
		if first := firstFailed(record); first != nil && first.Error != nil && (failure == nil || failure.Kind == interpreter.KindLoop) {
			failure = first.Error
			cause.Step += fmt.Sprintf("[%d]", first.Index)
			if first.Element.Data != nil {
				cause.Element = FormatElement(MaskSecrets(first.Element.Data))
			}
		}
	}
	if failure == nil {
		return nil
	}
	cause.describeFailure(failure)
	cause.Policy = o.policyOf(record, failure)
	if failure.Kind != interpreter.KindPlaybook { // else the body describes the child run
		body := bodyText(failure.Body.Data)
		cause.Body = NewExcerpt(o.placeTraceback(body))
		cause.Marked = o.markedLine(cause.Body)
	} else if run, child := o.childOf(failure); child != nil {
		if run.Partition != "" && run.Book != nil {
			cause.RunTitle = PartitionTitle(run.Book.Name, run.Partition)
		}
		cause.addChild(child, failure.Policy != 0)
	}
	return cause
}

// addChild adds why the child run failed. isRuled says that a policy of the parent's step decided about the child run.
func (c *Cause) addChild(child *Cause, isRuled bool) {
	c.Request, c.Params, c.Answer, c.Headers, c.Body = cmp.Or(child.Request, c.Request), child.Params, cmp.Or(child.Answer, c.Answer), child.Headers, child.Body
	c.RunStep = child.Step
	if child.Run != "" {
		c.Run, c.RunTitle, c.RunError, c.RunStep = child.Run, child.RunTitle, child.RunError, child.RunStep
	}
	switch {
	case child.Policy == "":
	case isRuled:
		c.Policy += " In the failed run: " + child.Policy
	default:
		c.Policy = child.Policy
	}
}

// WaitingCause returns why the first step that waits to retry failed last, as far as the run says it; nil if no step does.
func WaitingCause(status *runs.Status) *Cause {
	for _, step := range status.Steps {
		if step.Status != interpreter.RetryPending || step.Error == nil || step.Loop != nil {
			continue
		}
		cause := &Cause{Waits: true, Step: stepLabel(step), Body: ResponseBody(step.Error)}
		cause.describeFailure(step.Error)
		return cause
	}
	return nil
}

// describeFailure copies what the failure itself reports.
func (c *Cause) describeFailure(failure *interpreter.ErrorObject) {
	c.Message, c.Request = failure.Message, failure.URL
	c.describeChild(failure)
	if params := failure.Params.Data; params != nil {
		if of, isMap := params.(map[string]any); !isMap || len(of) > 0 {
			c.Params, _ = MaskedJSON(params, shownParams)
		}
	}
	if failure.Status != 0 {
		c.Answer = fmt.Sprintf("HTTP %d", failure.Status)
	}
	c.Headers = lists.Map(playbook.SortedKeys(failure.Headers), func(name string) string { return name + ": " + failure.Headers[name] })
}

// shownRunError bounds the shown line of a child run's error, in characters.
const shownRunError = 500

// describeChild copies what the failure reports about a child run.
func (c *Cause) describeChild(failure *interpreter.ErrorObject) {
	id, text := failure.FailedRun()
	if id == "" {
		return
	}
	first, _, _ := strings.Cut(strings.TrimSpace(cmp.Or(text, failure.Message)), "\n")
	c.Run, c.RunTitle, c.RunError = id, id, terminal.Shorten(first, shownRunError)
}

// shownParams bounds the shown parameters of a request, in bytes.
const shownParams = 2 << 10

// markedLine returns the last line of the playbook's file that a text names; 0 if there is none.
func (o EndedRun) markedLine(body Excerpt) (line int) {
	if o.Book == nil {
		return 0
	}
	frame := regexp.MustCompile(regexp.QuoteMeta(fmt.Sprintf("File %q, line ", o.Book.File.Name)) + `(\d+)`)
	for _, found := range frame.FindAllStringSubmatch(body.Text(), -1) {
		line, _ = strconv.Atoi(found[1])
	}
	return line
}

// policyOf returns the policy that decided about a failure, with its place and decision; "" if none did.
func (o EndedRun) policyOf(record *protocol.StepRecord, failure *interpreter.ErrorObject) string {
	if failure.Policy == 0 {
		if record == nil || !failure.PoliciesDecide() {
			return ""
		}
		return "No policy of retry matched, so the failure was final."
	}
	text := fmt.Sprintf("retry[%d]", failure.Policy)
	if o.Book != nil && record != nil {
		if step := o.Book.Step(record.Step); step != nil && failure.Policy <= len(step.Retry) {
			policy := step.Retry[failure.Policy-1]
			if !policy.Pos.IsZero() {
				text += fmt.Sprintf(", line %d", policy.Pos.Line)
			}
			if policy.When != nil {
				text += ": when " + terminal.Shorten(policy.When.Raw, 200)
			}
		}
	}
	attempts := terminal.Count(max(failure.Attempt, 1), "attempt")
	if failure.Exhausted {
		return text + ". It was exhausted after " + attempts + "."
	}
	return text + ". It stopped after " + attempts + "."
}

// Bounds of what is shown of a text; the rest is folded.
const (
	shownLines = 40
	shownEnds  = 15
)

// Excerpt is a long text whose middle can be folded.
type Excerpt struct {
	Head, Middle, Tail string
	// Lines is the number of lines in Middle.
	Lines int
}

// NewExcerpt splits off the middle of a long text.
func NewExcerpt(text string) Excerpt {
	lines := strings.Split(text, "\n")
	if len(lines) <= shownLines {
		return Excerpt{Head: text}
	}
	middle := lines[shownEnds : len(lines)-shownEnds]
	return Excerpt{
		Head: strings.Join(lines[:shownEnds], "\n"), Middle: strings.Join(middle, "\n"), Tail: strings.Join(lines[len(lines)-shownEnds:], "\n"), Lines: len(middle),
	}
}

// ResponseBody returns the response that came with a failure, as text. For a child run it is empty: the message suffices.
func ResponseBody(failure *interpreter.ErrorObject) Excerpt {
	if failure == nil || failure.Kind == interpreter.KindPlaybook {
		return Excerpt{}
	}
	return NewExcerpt(bodyText(failure.Body.Data))
}

// Text returns the whole text.
func (e Excerpt) Text() string {
	return strings.Join(slices.DeleteFunc([]string{e.Head, e.Middle, e.Tail}, func(part string) bool { return part == "" }), "\n")
}

// firstAndLast returns the first and last lines of a text, limited in lines and bytes, with a line in between that
// says how much was left out, and hint, how to see that.
func firstAndLast(text string, lines, size int, hint string) string {
	all := strings.Split(text, "\n")
	if len(all) <= lines && len(text) <= size {
		return text
	}
	head, tail := []string{}, []string{}
	taken := 0
	for i, j := 0, len(all)-1; i <= j && len(head)+len(tail) < lines; {
		fromEnd := len(tail) < len(head)
		line := all[i]
		if fromEnd {
			line = all[j]
		}
		if taken += len(line) + 1; taken > size {
			break
		}
		if fromEnd {
			tail, j = append(tail, line), j-1
		} else {
			head, i = append(head, line), i+1
		}
	}
	slices.Reverse(tail)
	if len(head) == 0 { // of one long line
		first, last := strings.ToValidUTF8(text[:size/2], ""), strings.ToValidUTF8(text[len(text)-size/2:], "")
		return first + fmt.Sprintf("\n… %d bytes are not shown; %s …\n", len(text)-len(first)-len(last), hint) + last
	}
	left := len(all) - len(head) - len(tail)
	between := fmt.Sprintf("… %s not shown; %s …", terminal.Count(left, "more line"), hint)
	return strings.Join(slices.Concat(head, []string{between}, tail), "\n")
}
