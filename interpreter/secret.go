package interpreter

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/statement"
)

// sealedKey is the only member of a sealed result: {"$sealed": "v1.…"}.
const sealedKey = "$sealed"

// SealResult returns the result of a secret step as runs store it. text is the encrypted result, made by the activity.
func SealResult(text string) expression.Value { return expression.Of(map[string]any{sealedKey: text}) }

// SealedText returns the text of a sealed result, "" for every other value.
func SealedText(v any) string {
	text, _ := expression.MapMember(v, sealedKey).(string)
	return text
}

// holdsSealed reports whether a value contains a sealed result.
func holdsSealed(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, holdsSealed)
	case map[string]any:
		if SealedText(v) != "" {
			return true
		}
		for _, key := range playbook.SortedKeys(v) {
			if holdsSealed(v[key]) {
				return true
			}
		}
	}
	return false
}

// RefuseSealed returns an error if values contain a sealed result in a place other than a later
// call; what names the place. It is a second check: validation refuses such expressions.
func RefuseSealed(book *playbook.Playbook, what string, values ...any) error {
	if !book.HasSecrets() || !slices.ContainsFunc(values, holdsSealed) {
		return nil
	}
	return fmt.Errorf("%s would contain the result of a secret step, which only fields of later calls may use", what)
}

// SecretWork says which secret results an attempt uses or produces; kept in workflow history.
type SecretWork struct {
	// Run is the run ID of the run's first history. Results are sealed for that run and their step.
	Run string `json:"run"`
	// Seals says that the attempt's own result must be sealed.
	Seals bool `json:"seals,omitempty"`
	// Sealed are the sealed results that Deferred uses, by step.
	Sealed   map[string]string    `json:"sealed,omitempty"`
	Deferred []DeferredExpression `json:"deferred,omitempty"`
	// Now is the value of now() in Deferred: when the request was rendered.
	Now time.Time `json:"now,omitzero"`
}

// DeferredExpression is an expression that uses a secret result, so that only the activity evaluates it. Until then
// asterisks replace its value. Kept in workflow history.
type DeferredExpression struct {
	In   RequestPart `json:"in"`
	Path []string    `json:"path"` // keys, and indexes of lists; the first is the name of the field
	// Template is the template as the author wrote it; "" for a parameter of the statement, whose number is Path.
	Template string `json:"template,omitempty"`
	// Dialect is the dialect of the statement.
	Dialect statement.Dialect `json:"dialect,omitempty"`
	// Steps are the secret steps that it uses.
	Steps []string `json:"steps"`
	// Scope has the values of its other names.
	Scope expression.Value `json:"scope,omitzero"`
}

// RequestPart is the part of a request that an expression is in.
type RequestPart string

// The parts of a request that may use secret results.
const (
	InFields RequestPart = "fields"
	InArgs   RequestPart = "args"
	InParams RequestPart = "params"
)

// SealedResult returns the sealed result of a step; "" if it has none, because it has not run or its failure was
// ignored.
func (s *Scope) SealedResult(step string) string {
	return SealedText(expression.MapMember(expression.MapMember(s.rootScope().data.Steps.Data, step), "data"))
}

// FillDeferred returns the attempt with deferred values filled in. opened has the decrypted results by step; seen is
// called with each expression's value. Errors may contain parts of secrets.
func (in ToolInput) FillDeferred(opened map[string]any, seen func(any)) (ToolInput, error) {
	work := in.Secret
	fields := make(map[string]any, len(in.Fields))
	for _, name := range playbook.SortedKeys(in.Fields) {
		fields[name] = in.Fields[name].Data
	}
	var args any
	if in.Args != nil {
		args = in.Args.Data
	}
	params := lists.Map(in.Params, func(param expression.Value) any { return param.Data })
	roots := map[RequestPart]any{InFields: fields, InArgs: args, InParams: params}
	budget := expression.NewBudget(expression.DecisionLimits, work.Now)
	statements := map[statement.Dialect]*statement.Statement{}
	for _, deferred := range work.Deferred {
		scope := revealedScope{captured: expression.MapOf(deferred.Scope.Data), opened: opened}
		text, err := deferred.readText(in, statements)
		var value any
		if err == nil {
			text.revealSecrets(deferred, scope, work.Now, seen)
			value, err = text.renderText(scope, budget)
		}
		if err != nil {
			return ToolInput{}, fmt.Errorf("%s: %w", deferred.placeText(), err)
		}
		roots[deferred.In] = placeValue(roots[deferred.In], deferred.Path, value)
	}
	fields = expression.MapOf(roots[InFields])
	in.Fields = make(map[string]expression.Value, len(fields))
	for _, name := range playbook.SortedKeys(fields) {
		in.Fields[name] = expression.Of(fields[name])
	}
	if in.Args != nil {
		in.Args = &expression.Value{Data: roots[InArgs]}
	}
	list, _ := roots[InParams].([]any)
	in.Params = expression.Values(list)
	return in, nil
}

// placeText returns the position of a deferred expression, for messages.
func (d DeferredExpression) placeText() string {
	if d.In == InFields {
		return strings.Join(d.Path, ".")
	}
	return string(d.In) + "." + strings.Join(d.Path, ".")
}

// errNotDeferred is the error about something that this build would not defer.
var errNotDeferred = errors.New("it was deferred by another build and cannot be evaluated here")

// deferredText is the source of a deferred expression: a template, or a parameter of a statement.
type deferredText struct {
	node  *playbook.Node // nil for a parameter
	isURL bool
	sql   *statement.Statement
	param int
}

// readText returns the source of the expression. statements caches the parsed statements of the attempt.
func (d DeferredExpression) readText(in ToolInput, statements map[statement.Dialect]*statement.Statement) (deferredText, error) {
	if d.In != InParams {
		node, problems := playbook.NewTemplate(d.Template)
		if len(problems) > 0 {
			return deferredText{}, errNotDeferred
		}
		return deferredText{node: node, isURL: d.In == InFields && isURL(d.Path)}, nil
	}
	if statements[d.Dialect] == nil {
		statements[d.Dialect], _ = statement.Parse(in.statementText(), d.Dialect)
	}
	parsed := statements[d.Dialect]
	i, err := strconv.Atoi(d.Path[0])
	if err != nil || i < 0 || i >= parsed.Params() {
		return deferredText{}, errNotDeferred
	}
	return deferredText{sql: parsed, param: i}, nil
}

// statementText returns the SQL statement whose parameters the attempt has: its own, or that of the source whose rows
// it moves.
func (in ToolInput) statementText() string {
	if from, err := in.NestedCall(playbook.FieldFrom); err == nil && playbook.TraitsOf(in.Tool).Moves {
		in = from
	}
	return expression.Text(in.Fields[playbook.FieldStatement].Data)
}

// isURL reports whether a path in the fields is the URL of a request.
func isURL(path []string) bool {
	if playbook.IsRequestField(path[0]) {
		path = path[1:]
	}
	return len(path) == 1 && path[0] == playbook.FieldURL
}

func (t deferredText) renderText(scope expression.Scope, budget *expression.Budget) (any, error) {
	switch {
	case t.sql != nil:
		return t.sql.RenderParam(t.param, scope, budget)
	case t.isURL:
		return t.node.RenderURL(scope, budget)
	default:
		return t.node.Render(scope, budget)
	}
}

// revealSecrets calls seen with the value of each expression that uses secrets, because a server may repeat it
// without the surrounding text.
func (t deferredText) revealSecrets(d DeferredExpression, scope expression.Scope, now time.Time, seen func(any)) {
	budget := expression.NewBudget(expression.DecisionLimits, now)
	for _, segment := range t.textTemplate().Segments() {
		if segment.Program == nil || !d.usesResult(segment.Program.Refs()) {
			continue
		}
		if value, err := segment.Eval(scope, budget); err == nil {
			seen(value)
		}
	}
}

func (t deferredText) textTemplate() *expression.Template {
	if t.sql != nil {
		return t.sql.Templates()[t.param]
	}
	return t.node.Template
}

// usesResult reports whether an expression with these references uses a secret result.
func (d DeferredExpression) usesResult(refs []expression.Ref) bool {
	return slices.ContainsFunc(refs, func(ref expression.Ref) bool {
		if ref.Root != "steps" || len(ref.Path) == 0 {
			return ref.Root == "steps" || slices.Contains(d.Steps, ref.Root)
		}
		name, _ := ref.Path[0].(string)
		return slices.Contains(d.Steps, name)
	})
}

// placeValue returns a copy of v in which the value at a path is replaced.
func placeValue(v any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch v := v.(type) {
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(v) {
			return v
		}
		copied := slices.Clone(v)
		copied[i] = placeValue(v[i], path[1:], value)
		return copied
	case map[string]any:
		copied := playbook.CloneMap(v, 1)
		copied[path[0]] = placeValue(v[path[0]], path[1:], value)
		return copied
	}
	return v
}

// revealedScope is the scope of a deferred expression.
type revealedScope struct {
	captured map[string]any
	opened   map[string]any
}

// Lookup implements expression.Scope.
func (r revealedScope) Lookup(name string) (any, bool) {
	if value, found := r.opened[name]; found {
		return value, true
	}
	value, found := r.captured[name]
	if name != "steps" {
		return value, found
	}
	steps := playbook.CloneMap(expression.MapOf(value), len(r.opened))
	for _, step := range playbook.SortedKeys(r.opened) {
		envelope := playbook.CloneMap(expression.MapOf(steps[step]), 1)
		envelope["data"] = r.opened[step]
		steps[step] = envelope
	}
	return steps, true
}
