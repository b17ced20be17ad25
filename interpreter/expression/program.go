package expression

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	exprparser "github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"reprise/interpreter/lists"
)

// Scope gives the values of names. An unknown name is nil in the expression. Values must be canonical and are never
// changed.
type Scope interface {
	Lookup(name string) (value any, ok bool)
}

// MapScope is a scope with fixed values.
type MapScope map[string]any

// Lookup implements Scope.
func (s MapScope) Lookup(name string) (any, bool) {
	v, ok := s[name]
	return v, ok
}

// Error is the error of Eval and Render. Offset is the position of the error, in runes from the start of the
// program or template that was evaluated.
type Error struct {
	Offset  int
	Message string
	// TooMuch says that the data exceeds the budget or the size of a result; a smaller amount of data could be
	// evaluated.
	TooMuch bool
}

func (e *Error) Error() string { return e.Message }

// Program is a compiled expression. It is immutable and safe for concurrent use.
type Program struct {
	source  string
	code    *vm.Program
	tree    ast.Node // before lowering
	refs    []Ref
	roots   []string
	builds  bool
	raw     bool
	literal *string // the value if the expression is just a literal text
	path    *memberPath
}

// memberPath is an expression that consists of a name with constant members.
type memberPath struct {
	root string
	keys []any
}

// Compile parses and compiles one expression. If there are problems it returns all that could be found, in order,
// and no program.
func Compile(source string) (*Program, []Problem) {
	text := []rune(source)
	if len(source) > maxSource {
		return nil, []Problem{{Offset: 0, End: len(text), Code: codeTooLarge, Message: fmt.Sprintf(
			"the expression has %d bytes, %d are allowed; compute a part of it in vars first", len(source), maxSource)}}
	}
	parsed, problems := parseExpression(text, false)
	if len(problems) > 0 {
		return nil, problems
	}
	code, err := compileTree(source, new(lowering).lowerValue(parsed.node))
	if err != nil {
		return nil, []Problem{{Offset: 0, End: len(text), Code: codeSyntax, Message: err.Error()}}
	}
	p := &Program{source: source, code: code, tree: parsed.node, refs: parsed.refs, builds: parsed.builds, raw: parsed.raw}
	for _, ref := range parsed.refs {
		p.roots = lists.AddUnique(p.roots, ref.Root)
	}
	if text, ok := parsed.node.(*ast.StringNode); ok {
		p.literal = &text.Value
	}
	if !p.builds {
		p.path = pathOf(parsed.node)
	}
	return p, nil
}

// pathOf returns the path that a tree consists of, or nil if it is something else.
func pathOf(node ast.Node) *memberPath {
	var keys []any
	for {
		switch n := withoutChain(node).(type) {
		case *ast.IdentifierNode:
			slices.Reverse(keys)
			return &memberPath{root: n.Value, keys: keys}
		case *ast.MemberNode:
			key, constant := constantKey(n.Property)
			if !constant {
				return nil
			}
			node, keys = n.Node, append(keys, key)
		default:
			return nil
		}
	}
}

// compileTree passes a lowered tree to expr. Nothing else in the package uses expr's checker, compiler or machine.
// expr's optimizer stays off, because it would turn "x and true" into x. Its builtins stay unregistered, because
// they would give a type to names such as count.
func compileTree(source string, node ast.Node) (*vm.Program, error) {
	config := &conf.Config{ShortCircuit: true, Functions: helpers}
	config.WithEnv(map[string]any{}) // exactly this type: names are read from the map directly
	config.Strict = false
	checked := &exprparser.Tree{Node: node, Source: file.NewSource(source)}
	if _, err := checker.Check(checked, config); err != nil {
		return nil, fmt.Errorf("the expression cannot be compiled: %w", err)
	}
	code, err := compiler.Compile(checked, config)
	if err != nil {
		return nil, fmt.Errorf("the expression cannot be compiled: %w", err)
	}
	return code, nil
}

// evaluations counts the calls of Eval.
var evaluations atomic.Int64

// EvaluationCount returns how many expressions this process has evaluated.
func EvaluationCount() int64 { return evaluations.Load() }

// Eval evaluates the program. The error is an *Error: the data does not fit the expression, the budget is used up,
// or the result as JSON is larger than the byte limit of the budget (4 MiB in a decision).
func (p *Program) Eval(scope Scope, b *Budget) (any, error) {
	evaluations.Add(1)
	if p.path != nil {
		base, _ := scope.Lookup(p.path.root)
		if value, err := opPath(b, base, p.path.keys); err == nil {
			return value, nil // an error gets its position below
		}
	}
	m := b.machine
	if m == nil {
		m, _ = machines.Get().(*machine)
	}
	m.env[budgetName] = b
	for _, root := range p.roots {
		if v, ok := scope.Lookup(root); ok {
			m.env[root] = v
		}
	}
	result, err := m.vm.Run(p.code, m.env)
	if b.machine == nil {
		m.putBack()
	}
	if err != nil {
		return nil, p.explainError(err, scope)
	}
	if !p.builds {
		return result, nil
	}
	if err := checkSize(result, b); err != nil {
		return nil, err
	}
	return result, nil
}

// machine is the memory of one evaluation. It is reused, because allocating it takes longer than evaluating most
// conditions.
type machine struct {
	vm  vm.VM
	env map[string]any
}

var machines = sync.Pool{New: func() any { return newMachine() }}

func newMachine() *machine {
	const depth, names = 16, 8
	return &machine{
		vm:  vm.VM{Stack: make([]any, 0, depth), MemoryBudget: math.MaxUint}, // the Budget bounds the work
		env: make(map[string]any, names),
	}
}

// putBack clears the machine and returns it to the pool. A machine that has evaluated predicates is not reused,
// because it keeps values that cannot be cleared.
func (m *machine) putBack() {
	if m.vm.Scopes != nil {
		return
	}
	clear(m.env)
	clear(m.vm.Variables)
	clear(m.vm.Stack[:cap(m.vm.Stack)])
	machines.Put(m)
}

// checkSize refuses a result that is larger as JSON than the byte limit of the budget, because a list that contains
// itself many times is small in memory. A value that is only taken from the scope needs no check.
func checkSize(result any, b *Budget) error {
	limit := b.limits.Bytes
	size, ok := sizeOf(result, limit)
	if !ok {
		return &Error{Message: fmt.Sprintf("the result has more than %d bytes as JSON; take the part that is needed", limit), TooMuch: true}
	}
	if err := b.chargeRead(size); err != nil {
		return &Error{Message: err.Error(), TooMuch: true}
	}
	return nil
}

// explainError converts an error of the machine to one for the author.
func (p *Program) explainError(err error, scope Scope) *Error {
	var located *file.Error
	if !errors.As(err, &located) {
		return &Error{Message: err.Error()}
	}
	var (
		missing  *nilOperand
		internal runtime.Error
	)
	switch {
	case errors.As(located.Prev, &missing):
		return p.nameOperand(located.From, missing, scope)
	case errors.As(located.Prev, &internal):
		return &Error{Offset: located.From, Message: fmt.Sprintf("%q cannot be evaluated: %v", p.source, internal)}
	case located.Message == emptyReduce:
		return &Error{
			Offset:  located.From,
			Message: "reduce of an empty list needs a start value, as in reduce(xs, #acc + #, 0)",
		}
	default:
		_, isBudget := errors.AsType[*budgetError](located.Prev)
		return &Error{Offset: located.From, Message: located.Message, TooMuch: isBudget || errors.Is(located.Prev, errTooLarge)}
	}
}

// emptyReduce is expr's message for reduce without a start value.
const emptyReduce = "reduce of empty array with no initial value"

// Refs returns the names that the expression takes from its scope, in the order in which they are written.
func (p *Program) Refs() []Ref { return slices.Clone(p.refs) }

// Source returns the expression as written.
func (p *Program) Source() string { return p.source }

// IsRaw reports whether the expression ends in | raw, so that its value is inserted into a url without escaping.
func (p *Program) IsRaw() bool { return p.raw }

// IsWritten reports whether every possible value of the expression is a literal text in it, as in '/a' if x else
// '/b', so that the value comes from the author and not from data.
func (p *Program) IsWritten() bool { return isWritten(p.tree) }

func isWritten(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.StringNode:
		return true
	case *ast.ConditionalNode:
		return isWritten(n.Exp1) && isWritten(n.Exp2)
	case *ast.MemberNode:
		list, ok := n.Node.(*ast.ArrayNode)
		return ok && !slices.ContainsFunc(list.Nodes, func(item ast.Node) bool { return !isWritten(item) })
	default:
		return false
	}
}
