// Package webhook has the tools whose attempts are answered from outside: webhook, which
// asks another system, and approval, which asks people.
package webhook

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"go.temporal.io/sdk/activity"

	"reprise/activities/tool"
	"reprise/internal/base/callback"
	"reprise/internal/base/seal"
	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// Tool sends the requests of a tool whose attempts are answered from
// outside: the workflow awaits the answer.
type Tool struct {
	spec    playbook.ToolSpec
	res     tool.Resources
	options Options
}

// Options are the operator's settings, and what sends the requests.
type Options struct {
	// Send sends a request as the tool http does; method is used where the fields
	// name none.
	Send func(ctx context.Context, in interpreter.ToolInput, method string) (interpreter.ToolResult, error)
	// Keys make the tokens of callbacks; nil refuses those that name one.
	Keys *seal.Keys
	// CallbackURL is where starter serve is reached from other systems; "" is not
	// known.
	CallbackURL string
}

var (
	_ tool.Tool     = (*Tool)(nil)
	_ tool.Beginner = (*Tool)(nil)
)

// New makes the tool webhook.
func New(res tool.Resources, options Options) *Tool {
	return &Tool{spec: webhookSpec, res: res, options: options}
}

var onStartFields = []playbook.Field{
	{Name: "on_start", Kind: playbook.KindRequest, Doc: "The request that starts an attempt, with the fields of `http` and auth. The default method is POST."},
	{Name: "on_cancel", Kind: playbook.KindRequest, Doc: "A request that is sent once if the run is cancelled before the answer arrives. Its outcome is ignored."},
}

var webhookSpec = playbook.ToolSpec{
	Name:    "webhook",
	Secrets: []string{"on_start", "on_cancel"},
	Summary: "Starts work in another system and waits until that says how it ended.",
	Doc: `An attempt sends on_start and then waits for an answer, up to timeout, without
occupying a worker. The answer comes over HTTP from the other system (starter serve),
from people (starter complete, fail and progress), or from any Temporal client (the
update answer). Without on_start, it only waits.

In on_start and on_cancel, the name callback says where to send the answer:
callback.url, callback.token, and the URLs callback.complete, callback.fail and
callback.progress, which take a POST. Each attempt has its own token, which answers no
other attempt. For tokens the worker needs REPRISE_SECRET_KEY, for URLs
REPRISE_CALLBACK_URL.

The data of complete is the result. If the request fails, the error has kind
webhook_failure, with the status, class and body of the response, or type timeout or
connection if there was none. The answer fail is an error of kind explicit, with its
details as body; its class is retryable, or final if the answer says retryable: false.
If no answer arrives in time, the error has kind timeout. The policies of the step
decide about each of them. Progress restarts the timeout and is shown in the status of
the run; its figures are kept across retries.

The request has the attempt key as Idempotency-Key.`,
	Fields: onStartFields,
	Example: `step: import
tool: webhook
timeout: 2m
on_start:
  url: "{{ workload.etl }}/imports"
  body: {file: "{{ workload.file }}", callback: "{{ callback.url }}"}
retry:
  - when: error.kind in ['timeout', 'webhook_failure', 'explicit']
    then: {max_attempts: 4, initial_delay: 10s, max_delay: 2m}
`,
}

// Spec describes the tool.
func (t *Tool) Spec() playbook.ToolSpec { return t.spec }

// Run sends the request that the input names. The response only confirms receipt.
func (t *Tool) Run(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	request, isMap := in.Fields[in.Sends].Data.(map[string]any)
	if !isMap {
		return interpreter.ToolResult{}, tool.ConfigErrorf("step %q: %s must be a map with a url", in.Step, in.Sends)
	}
	filled, err := t.fillIn(ctx, in, request)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	inner := in
	inner.Tool, inner.Fields = "http", make(map[string]expression.Value, len(filled))
	for name, value := range filled {
		inner.Fields[name] = expression.Of(value)
	}
	if auth, named := filled["auth"]; named {
		inner.Auth = expression.Text(auth)
		delete(inner.Fields, "auth")
	}
	result, err := t.options.Send(ctx, inner, http.MethodPost)
	return interpreter.ToolResult{Meta: result.Meta}, err
}

// fillIn puts what the request names of its callback into its place.
func (t *Tool) fillIn(ctx context.Context, in interpreter.ToolInput, fields map[string]any) (map[string]any, error) {
	if !containsText(fields, request.CallbackMarker(in.OperationKey, "")) {
		return fields, nil
	}
	if t.options.Keys == nil {
		return nil, tool.ConfigErrorf("step %q: %s names its callback, whose token is made with a key, and this worker has none; "+
			"set %s in the environment of the worker and of starter serve (%s)", in.Step, in.Sends, seal.Variable, seal.Advice)
	}
	to := interpreter.AnswerTo{Step: in.Step, Visit: in.Visit, Index: in.Index, Attempt: in.Attempt, Key: in.AttemptKey}
	address := callback.Address{To: to, Run: in.ControlID}
	if activity.IsActivity(ctx) {
		address.Workflow = activity.GetInfo(ctx).WorkflowExecution.ID
	}
	token, err := callback.SealToken(t.options.Keys, address)
	if err != nil {
		return nil, tool.ConfigErrorf("step %q: the token of its callback cannot be made: %w", in.Step, err)
	}
	tool.ConcealTexts(ctx, t.res.Secrets, []string{token})
	members := callback.CallbackMembers(t.options.CallbackURL, token)
	pairs := make([]string, 0, 2*len(playbook.CallbackMembers))
	inURL := slices.Clone(pairs)
	for _, name := range playbook.CallbackMembers {
		marker := request.CallbackMarker(in.OperationKey, name)
		if members[name] == "" && containsText(fields, marker) {
			return nil, tool.ConfigErrorf("step %q: %s names callback.%s, and this worker does not know where starter serve is reached; "+
				"set %s in its environment, or --callback-url", in.Step, in.Sends, name, callback.Variable)
		}
		pairs = append(pairs, marker, members[name])
		inURL = append(inURL, marker, url.QueryEscape(members[name])) // a part of it, as everything else there
	}
	filled, _ := replaceTexts(fields, strings.NewReplacer(pairs...)).(map[string]any)
	if address, isText := fields["url"].(string); isText {
		filled["url"] = strings.NewReplacer(inURL...).Replace(address)
	}
	return filled, nil
}

// containsText reports whether a text is anywhere in a value.
func containsText(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, text)
	case []any:
		for _, item := range v {
			if containsText(item, text) {
				return true
			}
		}
	case map[string]any:
		for key, item := range v {
			if strings.Contains(key, text) || containsText(item, text) {
				return true
			}
		}
	}
	return false
}

// replaceTexts gives a copy of a value with texts replaced.
func replaceTexts(v any, with *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return with.Replace(v)
	case []any:
		return lists.Map(v, func(item any) any { return replaceTexts(item, with) })
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, item := range v {
			object[with.Replace(key)] = replaceTexts(item, with)
		}
		return object
	}
	return v
}

// BeginsItself marks a tool that waits before it acts.
func (*Tool) BeginsItself() {}
