package request

import (
	"strconv"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Source is the step, iteration or sink that makes requests. It does not change while the call runs.
type Source struct {
	Book   *playbook.Playbook
	Run    interpreter.RunInfo
	Step   *playbook.Step
	Action *playbook.Action
	Visit  int
	Index  *int // index of the iteration, nil without a loop
	Scope  *interpreter.Scope
	Args   any // args of the route, laid over those of the step
	// Sink is set if the call writes a sink.
	Sink *SinkWrite
}

// CallPlace returns the place of the call, for messages.
func (s *Source) CallPlace() string {
	if s.Sink != nil {
		return "sink " + s.Sink.Place
	}
	return "step " + s.Step.Name
}

// StepOrSink returns the name of the step, or the place of the sink.
func (s *Source) StepOrSink() string {
	if s.Sink != nil {
		return s.Sink.Place
	}
	return s.Step.Name
}

// Name returns the name of the call in summaries: the step with the index of its iteration, or the place of the
// sink.
func (s *Source) Name() string {
	name := s.StepOrSink()
	if s.Index != nil {
		name += "[" + strconv.Itoa(*s.Index) + "]"
	}
	return name
}

// iterationIndex returns the index of the iteration for keys, nil without a loop.
func (s *Source) iterationIndex() any {
	if s.Index == nil {
		return nil
	}
	return *s.Index
}

// keyLength is 128 bits in hexadecimal. A sink treats a key that it has seen in any run as a repetition of that
// write, so two keys must never collide.
const keyLength = 32

// KeyDigest returns a digest of values, in the length of a key.
func KeyDigest(parts ...any) string { return expression.Digest(parts...)[:keyLength] }

// LedgerKey identifies the call in ledgers. It differs between the runs of one identity; a call that continues one
// of an earlier run uses the key of that call instead (State.Ledger).
func (s *Source) LedgerKey() string {
	return KeyDigest(s.Run.KeyPrefix(), s.Run.WholeLap(), s.Step.Name, s.Visit, s.iterationIndex())
}

// SinkTarget returns where a sink of the call writes, without the data to write. fixed is false if that is only known
// when there is something to write.
func (s *Source) SinkTarget(sink *playbook.Sink, now time.Time) (input interpreter.ToolInput, fixed bool) {
	action := s.Book.ResolveAction(sink.Action)
	if !s.Step.FixedPlace(action) {
		return interpreter.ToolInput{}, false
	}
	budget := expression.DecisionBudget(now)
	name, err := action.Tool.Render(s.Scope, budget)
	if err != nil {
		return interpreter.ToolInput{}, false
	}
	request, err := renderer{
		action: action, scope: s.Scope, budget: budget, intoFile: playbook.TraitsOf(expression.Text(name)).IntoFile,
	}.renderRequest(Request{})
	if err != nil {
		return interpreter.ToolInput{}, false // the write reports the error
	}
	tool := expression.Text(name)
	return interpreter.ToolInput{
		Tool: tool, Playbook: s.Run.Playbook, Attestation: s.Book.Attestation(), Step: s.Step.Name, Visit: s.Visit, Index: s.Index, Place: sink.Place,
		Fields: request.Fields, Auth: request.Auth, TimeoutSeconds: timeoutOf(action, tool).Seconds(),
	}, true
}

func timeoutOf(action *playbook.Action, tool string) time.Duration {
	if action.Timeout > 0 {
		return action.Timeout
	}
	return playbook.TraitsOf(tool).Timeout
}

// deferringBook returns the playbook for deferred expressions; nil for sinks, which defer nothing.
func (s *Source) deferringBook() *playbook.Playbook {
	if s.Sink != nil {
		return nil
	}
	return s.Book
}

// secretWork returns what the next attempt has to seal or unseal, nil for nothing.
func (s *Source) secretWork(request *Request) *interpreter.SecretWork {
	seals := s.Step.Secret && s.Sink == nil
	if !seals && len(request.Deferred) == 0 {
		return nil
	}
	work := &interpreter.SecretWork{Run: s.Run.RunID, Seals: seals, Deferred: request.Deferred}
	for _, deferred := range request.Deferred {
		for _, step := range deferred.Steps {
			if work.Sealed == nil {
				work.Sealed, work.Now = map[string]string{}, request.At
			}
			work.Sealed[step] = s.Scope.SealedResult(step)
		}
	}
	return work
}

// whatItWrites names, in messages, where a sealed result must not get.
const whatItWrites = "what it writes"

// refuseSealed returns an error if the sink would write a sealed result (RefuseSealed).
func (s *Source) refuseSealed(input interpreter.ToolInput) error {
	if !s.Book.HasSecrets() {
		return nil
	}
	written := []any{s.Sink.Result}
	if input.Args != nil {
		written = append(written, input.Args.Data)
	}
	for _, name := range playbook.SortedKeys(input.Fields) {
		written = append(written, input.Fields[name].Data)
	}
	for _, param := range input.Params {
		written = append(written, param.Data)
	}
	return interpreter.RefuseSealed(s.Book, whatItWrites, written...)
}
