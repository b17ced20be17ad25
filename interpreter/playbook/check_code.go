package playbook

import (
	"fmt"
	"slices"
	"strings"
)

// CodeProblem is code that does not compile.
type CodeProblem struct {
	Line, Column int // in the code, from 1; 0 where they are not known
	Message      string
}

// CodeCompiler is a catalogue of tools that can check whether code compiles.
type CodeCompiler interface {
	// Compile reads the codes of a playbook without running them and gives the
	// first problem of each, nil where there is none. It is bounded in time, and
	// gives nothing where that is unknown.
	Compile(codes []string) []*CodeProblem
}

// checkCode checks the code of calls as far as that is possible without running
// it: docs/reference/tools.md#python.
func checkCode(c *checker) {
	var nodes []*Node
	for _, call := range c.pb.actions() {
		spec := c.spec(c.toolOf(call.action))
		if spec == nil {
			continue
		}
		for _, entry := range call.action.Fields {
			code, ok := entry.Value.Value.(string)
			if field, known := spec.field(entry.Key); !ok || !known || field.Kind != KindCode {
				continue
			}
			templates := c.checkTemplates(entry.Value, code)
			if !templates && !strings.Contains(code, "main") && strings.TrimSpace(code) != "" {
				c.errorf(entry.Value.Position(0), codeCodeMain, "the code defines no main; write def main(…): with the args of the call as parameters, which returns the result")
				continue
			}
			c.checkMain(call, entry.Value, code)
			if !templates {
				nodes = append(nodes, entry.Value)
			}
		}
	}
	c.compile(nodes)
}

// checkTemplates reports templates in code. It is true where they keep the code
// from being read.
func (c *checker) checkTemplates(node *Node, code string) bool {
	inCode := false
	for _, found := range templatesIn(code) {
		const instead = "pass the value with args, as a parameter of main"
		if found.quoted {
			c.warnf(c.placing.at(node, found.at), codeTemplateInCode, "code is no template, so %s stays as it is; %s", shorten(found.text), instead)
			continue
		}
		inCode = true
		c.errorf(c.placing.at(node, found.at), codeTemplateInCode, "code is no template, and %s is no Python; %s", shorten(found.text), instead)
	}
	return inCode
}

// Codes are the texts of all fields with the name code, in order and each once:
// whatever a tool may take as a program.
func (pb *Playbook) Codes() []string {
	var codes []string
	for _, call := range pb.actions() {
		if call.action.Inline != nil {
			codes = append(codes, call.action.Inline.Codes()...)
		}
		for _, entry := range call.action.Fields {
			if code, ok := entry.Value.Value.(string); ok && entry.Key == "code" {
				codes = append(codes, code)
			}
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func (c *checker) checkMain(call actionAt, node *Node, code string) {
	main := readMain(code)
	switch {
	case main == nil:
		return
	case main.async:
		c.errorf(node.Position(main.at), codeCodeMain,
			"main is async, and nothing awaits it; write def main, and asyncio.run(…) in it around what is async")
		return
	}
	switch {
	case call.sink != nil && call.action.Args == nil:
		c.checkSinkMain(main, node)
	case call.sink != nil:
		var s supply
		s.add(call.action.Args, &s.always)
		c.checkArgs(main, node, call, s)
	case call.spot == atWorkbook:
		for _, step := range c.callers(call.action) {
			c.checkArgs(main, node, call, c.supplied(step, call.action.Args, step.Action.Args))
		}
	default:
		c.checkArgs(main, node, call, c.supplied(call.step, call.action.Args))
	}
}

// supply are the args that a call may get.
type supply struct {
	always, sometimes []*Entry
	open              bool // an expression gives more
}

func (s *supply) add(node *Node, into *[]*Entry) {
	switch {
	case node == nil:
	case node.kind == mapNode:
		*into = append(*into, node.Entries...)
	default:
		s.open = true
	}
}

func (s *supply) has(name string) bool {
	return slices.ContainsFunc(slices.Concat(s.always, s.sometimes), func(e *Entry) bool { return e.Key == name })
}

// checkSinkMain checks main of a sink without args, which gets the result.
func (c *checker) checkSinkMain(main *pythonMain, node *Node) {
	fits := main.accepts("result")
	for _, param := range main.params {
		fits = fits && (param.optional || param.name == "result")
	}
	if !fits {
		c.errorf(node.Position(main.at), codeCodeMain,
			"a sink without args calls main(result=…), but this main takes %s; write def main(result), or give the sink args", orNothing(main.names()))
	}
}

// supplied are the args of a step: its own, those of its later pages, and those
// of the routes that lead to it.
func (c *checker) supplied(step *Step, own ...*Node) supply {
	var s supply
	for _, args := range own {
		s.add(args, &s.always)
	}
	for next := range step.nextCalls() {
		s.add(next.Args, &s.sometimes)
	}
	for _, from := range c.pb.Steps {
		for _, route := range from.Next {
			for _, target := range route.Targets {
				if target.Step == step.Name {
					s.add(target.Args, &s.sometimes)
				}
			}
		}
	}
	return s
}

func (c *checker) checkArgs(main *pythonMain, node *Node, call actionAt, s supply) {
	for _, entry := range slices.Concat(s.always, s.sometimes) {
		if !main.accepts(entry.Key) {
			c.errorf(entry.KeyPos, codeCodeMain, "main has no parameter %q; it takes %s", entry.Key, orNothing(main.names()))
		}
	}
	if c.partial || s.open {
		return // what is missing may be given after all
	}
	var missing, given []string
	for _, param := range main.params {
		if !param.optional && !s.has(param.name) {
			missing = append(missing, fmt.Sprintf("%q", param.name))
		}
	}
	for _, entry := range s.always {
		given = append(given, entry.Key)
	}
	if len(missing) > 0 {
		c.errorf(node.Position(main.at), codeCodeMain, "main needs %s, but the args of %s give %s", strings.Join(missing, ", "), call.who(), orNothing(given))
	}
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return listed(names)
}

// compile asks the tools whether code compiles.
func (c *checker) compile(nodes []*Node) {
	compiler, ok := c.tools.(CodeCompiler)
	if !ok || len(nodes) == 0 {
		return
	}
	codes := make([]string, len(nodes))
	for i, node := range nodes {
		codes[i], _ = node.Value.(string)
	}
	for i, problem := range compiler.Compile(codes) {
		if problem == nil || i >= len(nodes) {
			continue
		}
		c.errorf(nodes[i].Position(offsetIn(codes[i], problem.Line, problem.Column)), CodeCodeSyntax, "the code does not compile: %s", problem.Message)
	}
}

// offsetIn is the place of a line and column of a text, in runes.
func offsetIn(text string, line, column int) int {
	at := 0
	for l := range strings.Lines(text) {
		if line--; line <= 0 {
			return at + min(max(column, 1), len([]rune(l))) - 1
		}
		at += len([]rune(l))
	}
	return 0
}
