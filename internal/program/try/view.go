package try

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"reprise/activities/tool"
	"reprise/internal/base/secrets"
	"reprise/internal/program/recording"
	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/credential"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// shownText bounds a shown body, field or value, in characters.
const shownText = 2000

// shownPart bounds the shown value of an expression's part, in characters.
const shownPart = 120

// maskedText masks secrets in a text.
func (t *trial) maskedText(text string) string { return t.Resources.Secrets.MaskText(text) }

// maskedValue masks secrets in a value.
func (t *trial) maskedValue(value any) any { return recording.MaskedValue(value, t.Resources.Secrets) }

func shortJSON(value any, most int) string {
	if value == nil {
		return "nil" // as the language calls it
	}
	encoded, err := expression.Encode(value)
	if err != nil {
		return err.Error()
	}
	return source.CutText(string(encoded), most)
}

// shownURL returns a URL without credentials.
func (t *trial) shownURL(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return t.maskedText(address)
	}
	return t.maskedText(tool.ShownURL(parsed, tool.MaxShownURL))
}

// requestOf returns the request as the transport sent it or, if it did not, as the call has it.
func (t *trial) requestOf(in interpreter.ToolInput, sent *exchange) Request {
	switch {
	case sent != nil:
		return Request{Method: sent.method, URL: sent.url, Headers: sent.headers, Body: source.CutText(sent.body, shownText)}
	case playbook.TraitsOf(in.Tool).Requests:
		current := t.call.View().Request
		_, address, _ := strings.Cut(current.String(), " ")
		return Request{Method: current.HTTPMethod(false), URL: t.shownURL(address)}
	}
	fields := map[string]any{}
	for _, name := range playbook.SortedKeys(in.Fields) {
		fields[name] = t.maskedValue(in.Fields[name].Data)
	}
	if len(in.Params) > 0 {
		values := lists.Map(in.Params, func(param expression.Value) any { return t.maskedValue(param.Data) })
		fields["params of the statement"] = values
	}
	if in.Args != nil {
		fields["args"] = t.maskedValue(in.Args.Data)
	}
	return Request{Fields: fields}
}

// responseOf returns the response.
func (t *trial) responseOf(outcome interpreter.Outcome, seen *exchange, took time.Duration) *Response {
	answer := &Response{Seconds: took.Seconds(), Status: outcome.Meta.Status, Data: expression.Of(t.maskedValue(outcome.Data)), RetryAfter: outcome.Meta.RetryAfter}
	if seen != nil {
		answer.Status, answer.Headers, answer.Bytes = seen.status, seen.answered, seen.size
		answer.Type, _, _ = strings.Cut(seen.answered["content-type"], ";")
	} else {
		answer.Type, answer.Bytes = expression.TypeName(outcome.Data), interpreter.EncodedSize(expression.Of(outcome.Data))
	}
	if failure := outcome.Err; failure != nil {
		answer.Error, answer.Kind, answer.Class = t.maskedText(failure.Message), string(failure.Kind), string(failure.Class)
		answer.Data, answer.RetryAfter = expression.Of(t.maskedValue(failure.Body.Data)), failure.RetryAfter
	}
	return answer
}

// policiesOf returns the step's policies with the conditions that were evaluated for the last outcome.
func (t *trial) policiesOf() []Policy {
	shown := lists.Map(t.step.Retry, func(policy *playbook.Policy) Policy { return Policy{Number: policy.Number, Conditions: []Condition{}} })
	for _, asked := range t.asked {
		condition := Condition{Word: asked.Word, Text: withoutBraces(asked.Node.Raw), Holds: asked.Holds, Parts: t.partsOf(asked.Parts)}
		if asked.Err != nil {
			condition.Error = t.maskedText(asked.Err.Error())
		}
		if i := slices.Index(t.step.Retry, asked.Policy); i >= 0 {
			shown[i].Conditions = append(shown[i].Conditions, condition)
		}
	}
	return shown
}

// withoutBraces removes the braces around an expression.
func withoutBraces(raw string) string {
	raw = strings.TrimSpace(raw)
	if strings.HasPrefix(raw, "{{") && strings.HasSuffix(raw, "}}") && strings.Count(raw, "{{") == 1 {
		raw = raw[2 : len(raw)-2]
	}
	return strings.Join(strings.Fields(raw), " ")
}

func (t *trial) partsOf(parts []expression.Part) []Part {
	shown := PartsOf(parts)
	for i := range shown {
		shown[i].Value, shown[i].Error = t.maskedText(shown[i].Value), t.maskedText(shown[i].Error)
	}
	return shown
}

// PartsOf returns the parts of an expression with their values as JSON. Parts whose names suggest secrets have no
// values.
func PartsOf(parts []expression.Part) []Part {
	shown := make([]Part, len(parts))
	for i, part := range parts {
		shown[i].Text = part.Text
		text, isText := part.Value.(string)
		switch {
		case part.Err != nil:
			shown[i].Error = part.Err.Error()
		case isText && credential.IsMember(part.Text, text):
			shown[i].Value = secrets.Stars
		default:
			shown[i].Value = shortJSON(recording.MaskedValue(part.Value, nil), shownPart)
		}
	}
	return shown
}

// nextThing returns what follows an attempt; nil if the call does not know.
func (t *trial) nextThing(in interpreter.ToolInput) *NextThing {
	if result := t.call.Result(); result != nil {
		if result.Failed() {
			return &NextThing{Kind: NextEnd, Text: "the step fails"}
		}
		return &NextThing{Kind: NextEnd, Text: "the step succeeds"}
	}
	following := &NextThing{Kind: NextRequest, Text: "the same request again"}
	ahead := t.call.View().DescribeAhead()
	if wait := ahead.Wait; wait != nil {
		following.Kind, following.Seconds, following.Text = NextWait, wait.Delay.Seconds(), t.maskedText(waitText(wait.Summary))
	}
	paged := ahead.Request != nil
	switch {
	case paged:
		following.Kind = NextRequest
		following.Changes = t.requestDiffs(in, *ahead.Request)
		following.Text = "the next page"
	case following.Kind == NextRequest && !ahead.Attempt:
		following.Kind, following.Text = NextStop, "the call is held for people, who decide how it continues"
	}
	if paged && t.requests >= t.Pages {
		following.Kind = NextStop
		following.Text = fmt.Sprintf("the next page, which is not requested: --pages %d", t.Pages)
	}
	return following
}

// requestDiffs returns how a request differs from the previous one.
func (t *trial) requestDiffs(before interpreter.ToolInput, after request.Request) []RequestDiff {
	old, fresh := map[string]string{}, map[string]string{}
	for name, value := range before.Fields {
		t.flattenValue(name, value.Data, old)
	}
	for name, value := range after.Fields {
		t.flattenValue(name, value.Data, fresh)
	}
	if before.Args != nil {
		t.flattenValue("args", before.Args.Data, old)
		t.flattenValue("args", after.Args.Data, fresh)
	}
	for i, value := range before.Params {
		t.flattenValue(fmt.Sprintf("$%d", i+1), value.Data, old)
	}
	for i, value := range after.Params {
		t.flattenValue(fmt.Sprintf("$%d", i+1), value.Data, fresh)
	}
	if place := after.After; place != nil {
		if old["rows before"] = "0"; before.Batch != nil && before.Batch.After != nil {
			old["rows before"] = fmt.Sprint(before.Batch.After.Rows)
		}
		fresh["rows before"] = fmt.Sprint(place.Rows)
	}
	var changes []RequestDiff
	for path, value := range old {
		if fresh[path] != value {
			changes = append(changes, RequestDiff{Path: path, From: value, To: fresh[path]})
		}
	}
	for path, value := range fresh {
		if _, had := old[path]; !had {
			changes = append(changes, RequestDiff{Path: path, To: value})
		}
	}
	slices.SortFunc(changes, func(a, b RequestDiff) int { return cmp.Compare(a.Path, b.Path) })
	return changes
}

// flattenValue collects the values of a field by path; a list is one value.
func (t *trial) flattenValue(path string, value any, into map[string]string) {
	members, isMap := value.(map[string]any)
	if !isMap || len(members) == 0 {
		into[path] = shortJSON(t.maskedValue(value), shownPart)
		text, _ := value.(string)
		if credential.IsMember(path, text) || credential.HeaderMayHoldSecret(path[strings.LastIndexByte(path, '.')+1:]) {
			into[path] = secrets.Stars
		}
		return
	}
	for key, member := range members {
		t.flattenValue(path+"."+key, member, into)
	}
}

// waitText describes what a wait leads to, and in parentheses why, from a summary that begins with the step's name.
func waitText(summary string) string {
	if place, rest, found := strings.Cut(summary, ": "); found && !strings.Contains(place, " ") {
		summary = rest
	}
	next, reason, found := strings.Cut(summary, ": ")
	if !found {
		return next
	}
	return next + " (" + reason + ")"
}
