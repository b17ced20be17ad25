package interpreter

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/statement"
)

// sealedKey is the one member of a result that is sealed: {"$sealed": "v1.…"}.
const sealedKey = "$sealed"

// Sealed is the result of a secret step as a run has it. text is what the
// activity has made of it.
func Sealed(text string) expression.Value { return expression.Of(map[string]any{sealedKey: text}) }

// sealedText is the text of a sealed result, "" for every other value.
func sealedText(v any) string {
	text, _ := member(v, sealedKey).(string)
	return text
}

// holdsSealed reports whether a value has a sealed result in it.
func holdsSealed(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, holdsSealed)
	case map[string]any:
		if sealedText(v) != "" {
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

// RefuseSealed is the error of values that have a sealed result in them, where
// nothing but a later call may use it; what names the place. The check at the
// door has refused the expressions that would get there.
func RefuseSealed(book *playbook.Playbook, what string, values ...any) error {
	if !book.HasSecrets() || !slices.ContainsFunc(values, holdsSealed) {
		return nil
	}
	return fmt.Errorf("%s would hold the result of a secret step, which is for fields of later calls alone", what)
}

// refuseSealed is RefuseSealed for what a sink is to write.
func (c *CallConfig) refuseSealed(input ToolInput) error {
	if !c.Book.HasSecrets() {
		return nil
	}
	written := []any{c.Sink.Result}
	if input.Args != nil {
		written = append(written, input.Args.Data)
	}
	for _, name := range playbook.SortedKeys(input.Fields) {
		written = append(written, input.Fields[name].Data)
	}
	for _, param := range input.Params {
		written = append(written, param.Data)
	}
	return RefuseSealed(c.Book, "what it writes", written...)
}

// secretWork says what an attempt has to do with secret results; kept in workflow
// history.
type secretWork struct {
	// Run is the first run of the chain. A result is sealed for it and its step.
	Run string `json:"run"`
	// Seals says that the attempt's own result is to be sealed.
	Seals bool `json:"seals,omitempty"`
	// Sealed are the sealed results that Deferred uses, by the names of their steps.
	Sealed   map[string]string `json:"sealed,omitempty"`
	Deferred []deferred        `json:"deferred,omitempty"`
	// Now is what now() gives in Deferred: when the request was rendered.
	Now time.Time `json:"now,omitzero"`
}

// deferred is an expression that uses a secret result: the activity evaluates it.
// Until then stars stand in its place. Kept in workflow history.
type deferred struct {
	In   deferredIn `json:"in"`
	Path []string   `json:"path"` // keys, and indexes of lists; the first is the field's name
	// Template is the text as the author wrote it; "" for a parameter of the
	// statement, whose number is Path.
	Template string `json:"template,omitempty"`
	// Dialect is that of the statement.
	Dialect statement.Dialect `json:"dialect,omitempty"`
	// Steps are the secret steps it uses.
	Steps []string `json:"steps"`
	// Scope holds what its other names mean.
	Scope expression.Value `json:"scope,omitzero"`
}

// deferredIn says in what part of a request an expression stands.
type deferredIn string

// The parts of a request that may use secret results.
const (
	inFields deferredIn = "fields"
	inArgs   deferredIn = "args"
	inParams deferredIn = "params"
)

// deferring renders values and leaves those out that use a sealed result.
type deferring struct {
	book   *playbook.Playbook // nil where nothing is deferred
	scope  *Scope
	budget *expression.Budget
	in     deferredIn
	found  []deferred
}

// value renders what stands at a path.
func (d *deferring) value(node *playbook.Node, path ...string) (any, error) {
	steps := d.sealed(node)
	switch {
	case len(steps) == 0:
		return node.Render(d.scope, d.budget)
	case node.Template != nil:
		d.add(deferred{Path: path, Template: node.Raw}, steps, node.Refs())
		return playbook.Hidden, nil
	case node.Items != nil:
		list := make([]any, len(node.Items))
		for i, item := range node.Items {
			value, err := d.value(item, append(slices.Clip(path), strconv.Itoa(i))...)
			if err != nil {
				return nil, err
			}
			list[i] = value
		}
		return list, nil
	}
	object := make(map[string]any, len(node.Entries))
	for _, entry := range node.Entries {
		value, err := d.value(entry.Value, append(slices.Clip(path), entry.Key)...)
		if err != nil {
			return nil, err
		}
		object[entry.Key] = value
	}
	return object, nil
}

// request renders a map that is a request of its own: its url is one.
func (d *deferring) request(node *playbook.Node, field string) (any, error) {
	if node.Entries == nil {
		return d.value(node, field)
	}
	request := make(map[string]any, len(node.Entries))
	for _, entry := range node.Entries {
		render := d.value
		if entry.Key == fieldURL {
			render = d.url
		}
		value, err := render(entry.Value, field, entry.Key)
		if err != nil {
			return nil, err
		}
		request[entry.Key] = value
	}
	return request, nil
}

// url renders a URL at a path, with stars in the place of what is sealed.
func (d *deferring) url(node *playbook.Node, path ...string) (any, error) {
	steps := d.sealed(node)
	if len(steps) == 0 {
		return node.RenderURL(d.scope, d.budget)
	}
	d.add(deferred{Path: path, Template: node.Raw}, steps, node.Refs())
	return node.RenderURLWithout(func(segment expression.Segment) bool {
		return len(d.sealedOf(segment.Program.Refs())) > 0
	}, d.scope, d.budget)
}

// params renders the parameters of a statement.
func (d *deferring) params(node *playbook.Node) ([]any, error) {
	if len(d.sealed(node)) == 0 {
		return node.RenderStatement(d.scope, d.budget)
	}
	parsed := node.Statement()
	values := make([]any, parsed.Params())
	for i, template := range parsed.Templates() {
		if steps := d.sealedOf(template.Refs()); len(steps) > 0 {
			d.add(deferred{Path: []string{strconv.Itoa(i)}, Dialect: parsed.Dialect()}, steps, template.Refs())
			values[i] = playbook.Hidden
			continue
		}
		value, err := node.RenderParam(i, d.scope, d.budget)
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	return values, nil
}

func (d *deferring) add(deferred deferred, steps []string, refs []expression.Ref) {
	deferred.In, deferred.Steps, deferred.Scope = d.in, steps, expression.Of(d.capture(refs))
	d.found = append(d.found, deferred)
}

// sealed are the steps whose sealed results a value uses.
func (d *deferring) sealed(node *playbook.Node) []string {
	if d.book == nil || node == nil || !d.book.HasSecrets() {
		return nil
	}
	return d.sealedOf(node.Refs())
}

func (d *deferring) sealedOf(refs []expression.Ref) []string {
	return slices.DeleteFunc(slices.Clone(d.book.SecretsNamed(refs)), func(name string) bool { return d.scope.sealed(name) == "" })
}

// sealed is the sealed result of a step, "" where it has none: it has not run, or
// its failure was ignored.
func (s *Scope) sealed(step string) string {
	return sealedText(member(member(s.root().data.Steps.Data, step), "data"))
}

// capture copies what expressions name, so that an activity can evaluate them. A
// sealed result goes along sealed.
func (d *deferring) capture(refs []expression.Ref) map[string]any {
	whole, captured := map[string]any{}, map[string]any{}
	var paths [][]string
	for _, ref := range refs {
		value, found := d.scope.Lookup(ref.Root)
		if !found || sealedText(value) != "" {
			continue
		}
		whole[ref.Root] = value
		path := append([]string{ref.Root}, playbook.ConstantMembers(ref.Path)...)
		if ref.Root == "steps" {
			path = d.book.DataPath(ref)
		}
		paths = append(paths, path)
	}
	for _, path := range withoutCovered(paths) {
		copyPath(whole, captured, path)
	}
	return captured
}

// without drops what was deferred where a field, or the args, are rendered again.
func without(all []deferred, in deferredIn, path ...string) []deferred {
	return slices.DeleteFunc(slices.Clone(all), func(deferred deferred) bool {
		return deferred.In == in && len(deferred.Path) >= len(path) && slices.Equal(deferred.Path[:len(path)], path)
	})
}

// withoutCoveredBy drops deferred args over which others were laid.
func withoutCoveredBy(all []deferred, args any) []deferred {
	return slices.DeleteFunc(slices.Clone(all), func(deferred deferred) bool {
		if deferred.In != inArgs {
			return false
		}
		over := args
		for _, key := range deferred.Path {
			m, isMap := over.(map[string]any)
			if !isMap {
				return over != nil
			}
			value, found := m[key]
			if !found {
				return false
			}
			over = value
		}
		return true
	})
}

// deferringBook is the playbook for what is deferred: sinks defer nothing.
func (c *CallConfig) deferringBook() *playbook.Playbook {
	if c.Sink != nil {
		return nil
	}
	return c.Book
}

// secretWork is what the next attempt has to do with secrets, nil for nothing.
func (c *CallConfig) secretWork(request Request) *secretWork {
	seals := c.Step.Secret && c.Sink == nil
	if !seals && len(request.Deferred) == 0 {
		return nil
	}
	work := &secretWork{Run: c.Run.RunID, Seals: seals, Deferred: request.Deferred}
	for _, deferred := range request.Deferred {
		for _, step := range deferred.Steps {
			if work.Sealed == nil {
				work.Sealed, work.Now = map[string]string{}, request.At
			}
			work.Sealed[step] = c.Scope.sealed(step)
		}
	}
	return work
}

// deferredDigest tells requests apart that differ in what is deferred.
func deferredDigest(all []deferred) string {
	encoded, err := json.Marshal(all)
	if err != nil {
		return fmt.Sprint(all)
	}
	return string(encoded)
}

// Reveal gives the attempt with what was deferred in its place. opened are the
// results by the names of their steps; seen is told what each expression makes of
// them. Errors may hold parts of them.
func (in ToolInput) Reveal(opened map[string]any, seen func(any)) (ToolInput, error) {
	work := in.Secret
	fields := make(map[string]any, len(in.Fields))
	for _, name := range playbook.SortedKeys(in.Fields) {
		fields[name] = in.Fields[name].Data
	}
	var args any
	if in.Args != nil {
		args = in.Args.Data
	}
	params := make([]any, len(in.Params))
	for i, param := range in.Params {
		params[i] = param.Data
	}
	roots := map[deferredIn]any{inFields: fields, inArgs: args, inParams: params}
	budget := expression.NewBudget(expression.DecisionLimits, work.Now)
	statements := map[statement.Dialect]*statement.Statement{}
	for _, deferred := range work.Deferred {
		scope := revealed{captured: asMap(deferred.Scope.Data), opened: opened}
		text, err := deferred.read(in, statements)
		var value any
		if err == nil {
			text.reveal(deferred, scope, work.Now, seen)
			value, err = text.render(scope, budget)
		}
		if err != nil {
			return ToolInput{}, fmt.Errorf("%s: %w", deferred.place(), err)
		}
		roots[deferred.In] = placed(roots[deferred.In], deferred.Path, value)
	}
	fields = asMap(roots[inFields])
	in.Fields = make(map[string]expression.Value, len(fields))
	for _, name := range playbook.SortedKeys(fields) {
		in.Fields[name] = expression.Of(fields[name])
	}
	if in.Args != nil {
		in.Args = &expression.Value{Data: roots[inArgs]}
	}
	list, _ := roots[inParams].([]any)
	in.Params = values(list)
	return in, nil
}

// place is where a deferred expression stands, for messages.
func (d deferred) place() string {
	if d.In == inFields {
		return strings.Join(d.Path, ".")
	}
	return string(d.In) + "." + strings.Join(d.Path, ".")
}

// errNotDeferred is something that no call of this build defers.
var errNotDeferred = errors.New("it was deferred by another build and cannot be evaluated here")

// deferredText is what a deferred expression is evaluated from: a text, or a
// parameter of a statement.
type deferredText struct {
	node  *playbook.Node // nil for a parameter
	isURL bool
	sql   *statement.Statement
	param int
}

// read gives the text of the expression. statements are those of the attempt that
// were read before.
func (d deferred) read(in ToolInput, statements map[statement.Dialect]*statement.Statement) (deferredText, error) {
	if d.In != inParams {
		node, problems := playbook.NewTemplate(d.Template)
		if len(problems) > 0 {
			return deferredText{}, errNotDeferred
		}
		return deferredText{node: node, isURL: d.In == inFields && isURL(d.Path)}, nil
	}
	if statements[d.Dialect] == nil {
		statements[d.Dialect], _ = statement.Parse(expression.Text(in.Fields[fieldStatement].Data), d.Dialect)
	}
	parsed := statements[d.Dialect]
	i, err := strconv.Atoi(d.Path[0])
	if err != nil || i < 0 || i >= parsed.Params() {
		return deferredText{}, errNotDeferred
	}
	return deferredText{sql: parsed, param: i}, nil
}

// isURL reports whether the URL of a request stands at a path of the fields.
func isURL(path []string) bool {
	if isRequest(path[0]) {
		path = path[1:]
	}
	return len(path) == 1 && path[0] == fieldURL
}

// isRequest reports whether a field is a request of its own.
func isRequest(field string) bool { return slices.Contains(playbook.RequestFields, field) }

func (t deferredText) render(scope expression.Scope, budget *expression.Budget) (any, error) {
	switch {
	case t.sql != nil:
		return t.sql.RenderParam(t.param, scope, budget)
	case t.isURL:
		return t.node.RenderURL(scope, budget)
	default:
		return t.node.Render(scope, budget)
	}
}

// reveal shows what each expression over secrets gives, which others may repeat
// without the text around it.
func (t deferredText) reveal(d deferred, scope expression.Scope, now time.Time, seen func(any)) {
	budget := expression.NewBudget(expression.DecisionLimits, now)
	for _, segment := range t.template().Segments() {
		if segment.Program == nil || !d.uses(segment.Program.Refs()) {
			continue
		}
		if value, err := segment.Eval(scope, budget); err == nil {
			seen(value)
		}
	}
}

func (t deferredText) template() *expression.Template {
	if t.sql != nil {
		return t.sql.Templates()[t.param]
	}
	return t.node.Template
}

// uses reports whether an expression with these names uses one of the results.
func (d deferred) uses(refs []expression.Ref) bool {
	return slices.ContainsFunc(refs, func(ref expression.Ref) bool {
		if ref.Root != "steps" || len(ref.Path) == 0 {
			return ref.Root == "steps" || slices.Contains(d.Steps, ref.Root)
		}
		name, _ := ref.Path[0].(string)
		return slices.Contains(d.Steps, name)
	})
}

// placed gives a copy of a value with another one at a path.
func placed(v any, path []string, value any) any {
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
		copied[i] = placed(v[i], path[1:], value)
		return copied
	case map[string]any:
		copied := playbook.CloneMap(v, 1)
		copied[path[0]] = placed(v[path[0]], path[1:], value)
		return copied
	}
	return v
}

// revealed is the scope of a deferred expression.
type revealed struct {
	captured map[string]any
	opened   map[string]any
}

// Lookup implements expression.Scope.
func (r revealed) Lookup(name string) (any, bool) {
	if value, found := r.opened[name]; found {
		return value, true
	}
	value, found := r.captured[name]
	if name != "steps" {
		return value, found
	}
	steps := playbook.CloneMap(asMap(value), len(r.opened))
	for _, step := range playbook.SortedKeys(r.opened) {
		envelope := playbook.CloneMap(asMap(steps[step]), 1)
		envelope["data"] = r.opened[step]
		steps[step] = envelope
	}
	return steps, true
}
