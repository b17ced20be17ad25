package request

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// Builder makes the requests of one call. It caches only what can be derived again: the progress of the call is in
// Requests and in the Moment.
type Builder struct {
	source Source
	action *playbook.Action // resolved; without args if the sink has no rows to write
	tool   string           // "" while it is unknown
	cached keyCache
}

// Moment is the progress of a call at which a request is rendered.
type Moment struct {
	StartedAt time.Time // of the call
	// Page is the page that is requested; for a sink, the page of its step.
	Page                     int
	Attempts, Lost, Restarts int
	// Claim is a key that differs for each claim and restart of the state between runs; "" if the step keeps none.
	// Incremental is the value of `incremental` in expressions; nil for none.
	Claim       string
	Incremental map[string]any
}

// NewBuilder prepares the requests of a source. It renders nothing yet, so it cannot fail.
func NewBuilder(source Source) Builder {
	action := source.Book.ResolveAction(source.Action)
	if source.Sink != nil && source.Sink.isPublishing() {
		bare := *action
		bare.Args = nil // there are no rows
		action = &bare
	}
	return Builder{source: source, action: action}
}

// ResolvedAction returns the resolved action of the requests.
func (b *Builder) ResolvedAction() *playbook.Action { return b.action }

// StartRequest renders the first request and makes it the current one. notes are warnings from its expressions.
func (b *Builder) StartRequest(r *Requests, m Moment, now time.Time) (notes []string, err error) {
	prepared, rendered := expression.DecisionBudget(now), expression.DecisionBudget(now)
	if err := b.prepareRequest(&r.Request, m, prepared); err != nil {
		return nil, err
	}
	request, err := b.newRenderer(&r.Request, m, rendered).renderRequest(r.Request)
	if err != nil {
		return nil, err
	}
	request.At = now
	// A call that restarts keeps its origin.
	if request.Origin = r.Request.Origin; request.Origin == "" && (request.Auth != "" || len(request.Deferred) > 0) {
		request.Origin = request.originOf()
	}
	print, err := b.fingerprintOf(request, m)
	if err != nil {
		return nil, err
	}
	r.Request = request
	r.Seen = append(r.Seen, print...)
	return append(prepared.Notes(), rendered.Notes()...), nil
}

// RenderAgain renders the first request again, for another moment, without making it the current one; repeats says that
// the call has made it before.
func (b *Builder) RenderAgain(r *Requests, m Moment, now time.Time) (request Request, repeats bool, notes []string, err error) {
	first := r.AfterRestart()
	if notes, err = b.StartRequest(&first, m, now); err != nil {
		return Request{}, false, nil, err
	}
	repeats = r.Seen.hasPrint(first.Seen)
	r.Seen = append(r.Seen, first.Seen...)
	return first.Request, repeats, notes, nil
}

// NextRequest renders the request of the next page, without making it the current one. then belongs to the policy that
// pages, and scope is its scope. repeats says that the same request was made before and the policy forbids that.
func (b *Builder) NextRequest(
	r *Requests, m Moment, then *playbook.Then, scope *interpreter.Scope, budget *expression.Budget, now time.Time,
) (request Request, repeats bool, err error) {
	request, err = b.newRenderer(&r.Request, m, budget).nextRequest(r.Request, then.NextCall, scope)
	if err != nil {
		return Request{}, false, err
	}
	request.At = now
	print, err := b.fingerprintOf(request, m)
	if err != nil {
		return Request{}, false, err
	}
	if !then.AllowRepeat && r.Seen.hasPrint(print) {
		return Request{}, true, nil
	}
	r.Seen = append(r.Seen, print...)
	return request, false, nil
}

// AttemptInput returns one attempt of the current request. Values that differ between attempts are
// rendered again.
func (b *Builder) AttemptInput(r *Requests, m Moment, now time.Time) (interpreter.ToolInput, error) {
	if err := b.renewKeys(&r.Request, m, b.attemptKeys(m)); err != nil {
		return interpreter.ToolInput{}, err
	}
	s, request := &b.source, &r.Request
	operation, attempt := b.OperationKey(m), b.AttemptKey(m)
	input := interpreter.ToolInput{
		Tool: b.tool, Playbook: s.Run.Playbook, Step: s.Step.Name, Visit: s.Visit, Index: s.Index,
		Page: m.Page, Attempt: m.Attempts + 1, Lost: m.Lost,
		RunID: s.Run.RunID, Attestation: s.Book.Attestation(),
		Fields: request.Fields, Params: request.Params, Auth: request.Auth, Origin: request.Origin, NextURL: request.hasNextURL(),
		TimeoutSeconds: b.AttemptLimit(m.StartedAt).Seconds(),
		OperationKey:   operation, AttemptKey: attempt,
		IdempotencyKey: idempotencyKey(b.action, b.tool, request.HTTPMethod(s.Sink != nil), operation, attempt),
		Secret:         s.secretWork(request),
	}
	if request.SendsRequest() {
		input.Sends = playbook.FieldOnStart
	}
	if limit := b.action.RateLimit; limit != nil {
		rate, err := rateLimit(s.Book.Name, limit, input, b.newRenderer(request, m, expression.DecisionBudget(now)))
		if err != nil {
			return interpreter.ToolInput{}, err
		}
		input.RateLimit = rate
	}
	if request.Args.Data != nil {
		input.Args = &expression.Value{Data: request.Args.Data}
	}
	if path, reads := s.Step.BatchPath(b.action); reads && playbook.TraitsOf(b.tool).IntoFile {
		input.Batch = &interpreter.RowBatch{After: request.After, Path: path}
	}
	if s.Sink == nil {
		shape, err := b.rowWork(&input, request, m)
		input.Shape = shape
		return input, err
	}
	return input, b.addWrite(&input, request, m)
}

// addWrite adds the data that a sink writes to the input of its attempt.
func (b *Builder) addWrite(input *interpreter.ToolInput, request *Request, m Moment) (err error) {
	sink := b.source.Sink
	writes := sink.defaultRows()
	input.Place, input.Fingerprint, input.Staging = sink.Place, expression.ShortDigest(writes), sink.Staging
	if !sink.isPublishing() && b.action.Args == nil && b.action.Field(playbook.FieldStatement) == nil {
		input.Result = &expression.Value{Data: writes}
	}
	if err := b.source.refuseSealed(*input); err != nil {
		return err
	}
	if of := b.source.Step.Incremental; of != nil && of.CursorPath != "" {
		input.Cursor = &incremental.CursorField{Path: of.CursorPath, Type: of.Type, Format: of.Format, Behind: sink.Behind}
	}
	input.State = sink.stateFor(input, b.action.Args != nil)
	input.Shape, err = b.rowWork(input, request, m)
	return err
}

// CancelInput returns the request that informs the server that the current attempt was cancelled; false if the step
// has none.
func (b *Builder) CancelInput(r *Requests, m Moment, now time.Time) (interpreter.ToolInput, bool) {
	if _, has := r.Request.Fields[playbook.FieldOnCancel]; !has {
		return interpreter.ToolInput{}, false
	}
	input, err := b.AttemptInput(r, m, now)
	input.Sends = playbook.FieldOnCancel
	if input.IdempotencyKey != "" {
		input.IdempotencyKey += ":" + playbook.FieldOnCancel // distinguishes it from on_start for the server
	}
	return input, err == nil
}

// KeyedScope returns the scope of the source with the keys of an attempt.
func (b *Builder) KeyedScope(m Moment) *interpreter.Scope {
	return b.source.Scope.With(b.attemptKeys(m))
}

// RequestScope returns the scope of the requests, with their keys and args.
func (b *Builder) RequestScope(request *Request, m Moment) *interpreter.Scope {
	scope := b.KeyedScope(m)
	if args, isMap := request.Args.Data.(map[string]any); isMap {
		scope = scope.With(map[string]any{"args": args})
	}
	if b.tool != "" {
		return scope
	}
	// A separate budget, because a call that continues elsewhere would be charged twice.
	if name, err := b.action.Tool.Render(scope, expression.DecisionBudget(m.StartedAt)); err == nil {
		b.tool = expression.Text(name)
	}
	return scope
}

// ToolName returns the name of the tool of a call that started at started; "" if it cannot be rendered.
func (b *Builder) ToolName(started time.Time) string {
	if b.tool != "" {
		return b.tool
	}
	if name, literal := b.action.ToolName(); literal {
		return name
	}
	name, err := b.action.Tool.Render(b.source.Scope, expression.DecisionBudget(started))
	if err != nil {
		return ""
	}
	return expression.Text(name)
}

// ToolTraits returns the traits of the call's tool; the default ones if its name is unknown.
func (b *Builder) ToolTraits(started time.Time) playbook.Traits {
	return playbook.TraitsOf(b.ToolName(started))
}

// maxSending bounds how long the request that starts an awaited attempt may take. The attempt's timeout may be
// days, and an unresponsive server would occupy a worker for as long.
const maxSending = 30 * time.Second

// AttemptLimit returns how long the activity of an attempt may take; 0 for no limit.
func (b *Builder) AttemptLimit(started time.Time) time.Duration {
	limit := b.AnswerLimit(started)
	if b.ToolTraits(started).Awaits && (limit == 0 || limit > maxSending) {
		return maxSending
	}
	return limit
}

// AnswerLimit returns how long an attempt may take to be answered, or between reports of its progress; 0 for no
// limit.
func (b *Builder) AnswerLimit(started time.Time) time.Duration {
	return timeoutOf(b.action, b.ToolName(started))
}

// prepareRequest renders the args and the tool's name, which the fields may use.
func (b *Builder) prepareRequest(request *Request, m Moment, budget *expression.Budget) error {
	scope := b.KeyedScope(m)
	name, err := b.action.Tool.Render(scope, budget)
	if err != nil {
		return err
	}
	if text, ok := name.(string); !ok || text == "" {
		return &playbook.EvalError{Pos: b.action.Tool.Pos, Message: fmt.Sprintf("tool must be the name of a tool, not %q", expression.Text(name))}
	}
	return b.renderArgs(request, scope, budget)
}

// renderArgs renders the args of the call, whose expressions can use the args of the route, and lays the args of
// the route over them.
func (b *Builder) renderArgs(request *Request, scope *interpreter.Scope, budget *expression.Budget) error {
	routed := b.source.Args
	request.Args = expression.Of(routed)
	if b.action.Args == nil {
		return nil
	}
	if routed != nil {
		scope = scope.With(map[string]any{"args": routed})
	}
	secret := deferring{book: b.source.deferringBook(), scope: scope, budget: budget, in: interpreter.InArgs}
	own, err := secret.renderValue(b.action.Args)
	if list, maps := b.mappedList(err, scope, budget); maps {
		request.Args, request.MapsRows = expression.Of(list), true
		return nil
	}
	if err != nil {
		return err
	}
	request.MapsRows = false
	b.noteAbsent(own, scope, budget)
	if _, isMap := own.(map[string]any); !isMap && own != nil && b.source.Sink == nil {
		message := "args must be a map, not " + expression.TypeName(own)
		if _, isList := own.([]any); isList {
			message += playbook.ListArgs
		}
		return &playbook.EvalError{Pos: b.action.Args.Pos, Message: message}
	}
	request.deferAnew(secret)
	request.Args = expression.Of(own)
	if routed != nil {
		request.mergeOver(expression.MapOrEmpty(own), routed)
	}
	return nil
}

// renewKeys renders the fields again that use a key of docs/concepts/keys.md, which is all that changes
// between attempts of a request and between polls. now() keeps the time at which the request was rendered.
func (b *Builder) renewKeys(request *Request, m Moment, keys map[string]any) error {
	if !namesAnyKey(b.action) {
		if b.tool == "" {
			b.RequestScope(request, m) // which finds out the tool
		}
		return nil
	}
	budget := expression.DecisionBudget(request.At)
	again := b.newRenderer(request, m, budget)
	names := namesKeys
	if UsesAny(namesKeys...)(b.action.Args) {
		if err := b.renderArgs(request, b.KeyedScope(m).With(keys), budget); err != nil {
			return err
		}
		request.mergeOver(request.Args.Data, request.Overlay.Args.Data)
		names = append([]string{"args"}, namesKeys...)
	}
	if args, isMap := request.Args.Data.(map[string]any); isMap {
		keys = playbook.CloneMap(keys, 1)
		keys["args"] = args
	}
	again.scope = again.scope.With(keys)
	request.Fields = playbook.CloneMap(request.Fields, 0) // the previous attempt may still be read
	return again.renderFields(request, UsesAny(names...))
}

// namesAnyKey reports whether any part of the action's request changes between attempts.
func namesAnyKey(action *playbook.Action) bool {
	return action.Args.UsesAny(namesKeys...) || slices.ContainsFunc(action.Fields, func(field *playbook.Entry) bool {
		return field.Value.UsesAny(namesKeys...)
	})
}

// fingerprintOf returns the fingerprint of a request, for the check for repeated requests. Keys do not count.
func (b *Builder) fingerprintOf(request Request, m Moment) (Fingerprints, error) {
	if err := b.renewKeys(&request, m, noKeys); err != nil {
		return nil, err
	}
	return request.fingerprintFor(b.ToolName(m.StartedAt)), nil
}

func (b *Builder) newRenderer(request *Request, m Moment, budget *expression.Budget) renderer {
	scope := b.RequestScope(request, m)
	return renderer{
		book: b.source.deferringBook(), action: b.action, scope: scope, budget: budget,
		asksPeople: playbook.TraitsOf(b.tool).AsksPeople, intoFile: playbook.TraitsOf(b.tool).IntoFile, moves: playbook.TraitsOf(b.tool).Moves,
	}
}
