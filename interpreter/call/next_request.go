package call

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
)

// begin renders the first request.
func (c *Call) begin(now time.Time) {
	if err := c.prepare(now); err != nil {
		c.fail(interpreter.ExpressionError(c.config.Book, c.config.where(), err), now)
		return
	}
	request, err := c.renderer(decisionBudget(now)).request(c.state.Request)
	if err != nil {
		c.fail(interpreter.ExpressionError(c.config.Book, c.config.where(), err), now)
		return
	}
	request.At = now
	// A call that begins again is the same call.
	if request.Origin = c.state.Request.Origin; request.Origin == "" && (request.Auth != "" || len(request.Deferred) > 0) {
		request.Origin = request.origin()
	}
	print, err := c.fingerprint(request)
	if err != nil {
		c.fail(interpreter.ExpressionError(c.config.Book, c.config.where(), err), now)
		return
	}
	c.state.Request = request
	c.state.Seen = append(c.state.Seen, print...)
	c.state.again(nil)
}

// prepare renders the args and the tool's name, which the fields may use.
func (c *Call) prepare(now time.Time) error {
	budget := decisionBudget(now)
	scope := c.config.Scope.With(c.keys())
	name, err := c.action.Tool.Render(scope, budget)
	if err != nil {
		return err
	}
	if text, ok := name.(string); !ok || text == "" {
		return &playbook.EvalError{Pos: c.action.Tool.Pos, Message: fmt.Sprintf("tool must be the name of a tool, not %q", expression.Text(name))}
	}
	return c.args(&c.state.Request, scope, budget)
}

// args renders the call's own args, which see those of the route, and lays
// those of the route over them.
func (c *Call) args(request *Request, scope *interpreter.Scope, budget *expression.Budget) error {
	routed := c.config.Args
	request.Args = expression.Of(routed)
	if c.action.Args == nil {
		return nil
	}
	if routed != nil {
		scope = scope.With(map[string]any{"args": routed})
	}
	secret := deferring{book: c.config.deferringBook(), scope: scope, budget: budget, in: interpreter.InArgs}
	own, err := secret.value(c.action.Args)
	if err != nil {
		return err
	}
	if _, isMap := own.(map[string]any); !isMap && own != nil && c.config.Sink == nil {
		message := "args must be a map, not " + expression.TypeName(own)
		if _, isList := own.([]any); isList {
			message += playbook.ListArgs
		}
		return &playbook.EvalError{Pos: c.action.Args.Pos, Message: message}
	}
	request.deferAnew(secret)
	request.Args = expression.Of(own)
	if routed != nil {
		request.lay(expression.OrEmpty(own), routed)
	}
	return nil
}

// lay merges args over others.
func (r *Request) lay(args, over any) {
	r.Args = expression.Of(expression.Merge(args, over))
	if len(r.Deferred) > 0 {
		r.Deferred = withoutCoveredBy(r.Deferred, over)
	}
}

// renew renders again what names the keys of docs/concepts/attempts.md#keys: all
// that changes between the attempts of a request and between polls. now() stays
// its value when the request was rendered.
func (c *Call) renew(request *Request, keys map[string]any) error {
	if !namesAnyKey(c.action) {
		c.restore(c.state.StartedAt)
		return nil
	}
	budget := decisionBudget(request.At)
	again := c.renderer(budget)
	wanted := namesKeys
	if naming(namesKeys...)(c.action.Args) {
		if err := c.args(request, c.config.Scope.With(c.keys()).With(keys), budget); err != nil {
			return err
		}
		request.lay(request.Args.Data, request.Overlay.Args.Data)
		wanted = append([]string{"args"}, namesKeys...)
	}
	if args, isMap := request.Args.Data.(map[string]any); isMap {
		keys = playbook.CloneMap(keys, 1)
		keys["args"] = args
	}
	again.scope = again.scope.With(keys)
	request.Fields = playbook.CloneMap(request.Fields, 0) // the attempt before may still be read
	return again.fields(request, naming(wanted...))
}

// namesAnyKey reports whether anything of an action's request changes between
// attempts.
func namesAnyKey(action *playbook.Action) bool {
	return action.Args.Names(namesKeys...) || slices.ContainsFunc(action.Fields, func(field *playbook.Entry) bool {
		return field.Value.Names(namesKeys...)
	})
}

// nextRequest is the request of the next page.
func (c *Call) nextRequest(decision retry.Decision, budget *expression.Budget, now time.Time) (Request, *interpreter.ErrorObject) {
	then := c.config.then(decision.Policy)
	request, err := c.renderer(budget).next(c.state.Request, then.NextCall, c.policyScope())
	if err != nil {
		return Request{}, c.complete(interpreter.ExpressionError(c.config.Book, c.config.whereThen(decision.Policy), err))
	}
	request.At = now
	print, err := c.fingerprint(request)
	if err != nil {
		return Request{}, c.complete(interpreter.ExpressionError(c.config.Book, c.config.whereThen(decision.Policy), err))
	}
	if !then.AllowRepeat && c.state.Seen.has(print) {
		return Request{}, c.repeatError("the request for page %d was made before in this call", c.state.Successes+1)
	}
	c.state.Seen = append(c.state.Seen, print...)
	return request, nil
}

func (c *Call) repeatError(format string, args ...any) *interpreter.ErrorObject {
	return c.complete(&interpreter.ErrorObject{
		Kind: interpreter.KindRepeat, Class: interpreter.ClassFinal,
		Message: fmt.Sprintf("%s: %s, so the pages would never end; check next_call, or set allow_repeat: true, or end_on_repeat: true where that is the end",
			c.config.where(), fmt.Sprintf(format, args...)),
	})
}

// fingerprint identifies a request of the call for the guard against
// repetition. The keys are left out of the comparison.
func (c *Call) fingerprint(request Request) (Fingerprints, error) {
	if err := c.renew(&request, noKeys); err != nil {
		return nil, err
	}
	return request.fingerprint(c.toolName()), nil
}

// noKeys are the keys of requests that their keys do not distinguish. Scopes only
// read it.
var noKeys = withoutKeys()

func withoutKeys() map[string]any {
	none := make(map[string]any, len(namesKeys))
	for _, name := range namesKeys {
		none[name] = ""
	}
	none[playbook.CallbackWord] = callback("")
	return none
}

// restore sets what is derived from State; it runs before every rendering.
func (c *Call) restore(now time.Time) {
	c.scope = c.config.Scope.With(c.keys())
	if args, isMap := c.state.Request.Args.Data.(map[string]any); isMap {
		c.scope = c.scope.With(map[string]any{"args": args})
	}
	if c.tool != "" {
		return
	}
	// A budget of its own, or a call that continues elsewhere would be charged twice.
	if name, err := c.action.Tool.Render(c.scope, decisionBudget(now)); err == nil {
		c.tool = expression.Text(name)
	}
}

func (c *Call) renderer(budget *expression.Budget) renderer {
	c.restore(c.state.StartedAt)
	return renderer{book: c.config.deferringBook(), action: c.action, scope: c.scope, budget: budget, asksPeople: playbook.TraitsOf(c.tool).AsksPeople}
}

func decisionBudget(now time.Time) *expression.Budget {
	return expression.NewBudget(expression.DecisionLimits, now)
}

// attempt is one attempt of the request at hand.
func (c *Call) attempt(now time.Time) (interpreter.ToolInput, error) {
	if err := c.renew(&c.state.Request, c.keys()); err != nil {
		return interpreter.ToolInput{}, err
	}
	operation, attempt := c.operationKey(), c.attemptKey()
	request := c.state.Request
	input := interpreter.ToolInput{
		Tool: c.tool, Playbook: c.config.Run.Playbook, Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index,
		Page: c.page(), Attempt: c.state.Attempts + 1, Lost: c.state.Lost,
		RunID:  c.config.Run.RunID,
		Fields: request.Fields, Params: request.Params, Auth: request.Auth, Origin: request.Origin,
		TimeoutSeconds: c.attemptLimit().Seconds(),
		OperationKey:   operation, AttemptKey: attempt,
		IdempotencyKey: idempotencyKey(c.action, c.tool, c.method(), operation, attempt),
		Secret:         c.config.secretWork(request), Turn: c.state.Turn,
	}
	if c.Sends() {
		input.Sends = playbook.FieldOnStart
	}
	if limit := c.action.RateLimit; limit != nil {
		rate, err := c.config.rateLimit(limit, input, c.renderer(decisionBudget(now)))
		if err != nil {
			return interpreter.ToolInput{}, err
		}
		input.RateLimit = rate
	}
	if request.Args.Data != nil {
		input.Args = &expression.Value{Data: request.Args.Data}
	}
	if sink := c.config.Sink; sink != nil {
		writes := sink.writes()
		input.Place, input.Fingerprint, input.Staging = sink.Place, expression.Hash(writes), sink.staging
		if !sink.publishes() && c.action.Args == nil && c.action.Field(playbook.FieldStatement) == nil {
			input.Result = &expression.Value{Data: writes}
		}
		if err := c.config.refuseSealed(input); err != nil {
			return interpreter.ToolInput{}, err
		}
		input.State = sink.stateFor(&input)
	}
	return input, nil
}

// operationKeyLength is 128 bits in hexadecimal: a sink takes a key it has
// seen, in any run, for a repetition of that write, so two must never be the same.
const operationKeyLength = 32

// operationKey is the same for every attempt and redelivery of one request
// (docs/concepts/attempts.md#keys).
func (c *Call) operationKey() string {
	page := c.page()
	if c.operation.page == page && c.operation.key != "" {
		return c.operation.key
	}
	index, place := any(nil), ""
	if c.config.Index != nil {
		index = *c.config.Index
	}
	if sink := c.config.Sink; sink != nil {
		place = sink.Place
		if lap := c.config.Run.WholeLap(); sink.everyRound && lap != "" {
			place += "@" + lap
		}
	}
	parts := []any{c.config.Run.Identity(), c.config.Step.Name, c.config.Visit, index, page, place}
	if restarts := c.state.Restarts; restarts > 0 {
		parts = append(parts, restarts) // or the server would repeat its answer of the round before
	}
	if sink := c.config.Sink; sink != nil && sink.staging != nil {
		parts = append(parts, sink.staging.ID, sink.staging.Round, string(sink.staging.Do)) // what is staged anew is written anew
	}
	if claim := c.claim(); claim != "" {
		parts = append(parts, claim) // what is read from elsewhere is another page
	}
	key := expression.Digest(parts...)[:operationKeyLength]
	c.operation = pageKey{page: page, key: key}
	return key
}

// pageKey is the operation key of a page, with the names of one attempt. All
// else that is in a key is the same for a whole call.
type pageKey struct {
	page int
	key  string

	attempt int
	names   map[string]any
}

// attemptKey is another one for each attempt, those of a reprocess included.
func (c *Call) attemptKey() string {
	if lap := c.config.Run.WholeLap(); lap != "" {
		return fmt.Sprintf("%s:%s.%d", c.operationKey(), lap, c.state.Attempts+1)
	}
	return c.operationKey() + ":" + strconv.Itoa(c.state.Attempts+1)
}

// keys are the names that only exist while something is sent. Much is rendered
// with the same ones.
func (c *Call) keys() map[string]any {
	operation, attempt := c.operationKey(), c.state.Attempts+1
	if sent := &c.operation; sent.names == nil || sent.attempt != attempt {
		sent.attempt = attempt
		sent.names = map[string]any{"operation_key": operation, "attempt_key": c.attemptKey()}
		if c.AnsweredFromOutside() {
			sent.names[playbook.CallbackWord] = callback(operation)
		}
		if c.config.Sink != nil {
			sent.names["result"] = c.config.Sink.Result
		}
		if c.config.incremental() != nil {
			sent.names["incremental"] = c.incrementalNames()
		}
	}
	return c.operation.names
}
