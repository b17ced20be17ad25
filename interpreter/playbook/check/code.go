package check

import (
	"fmt"
	"slices"
	"strings"

	"reprise/interpreter/playbook"
)

// CodeProblem is a problem of code that does not compile.
type CodeProblem struct {
	Line, Column int // in the code, from 1; 0 if unknown
	Message      string
}

// CodeCompiler is a catalogue of tools that can check whether code compiles.
type CodeCompiler interface {
	// CompilePython compiles codes without running them and returns the first problem of each, nil
	// for none. It is bounded in time, and returns nothing if the result is unknown.
	CompilePython(codes []string) []*CodeProblem
}

// checkCode checks the code of calls as far as possible without running it: docs/reference/tools.md#python.
func checkCode(c *checker) {
	var nodes []*playbook.Node
	for _, call := range c.pb.AllCalls() {
		spec := c.toolSpec(c.toolOf(call.Action))
		if spec == nil {
			continue
		}
		for _, entry := range call.Action.Fields {
			code, ok := entry.Value.Value.(string)
			if field, known := spec.Field(entry.Key); !ok || !known || field.Kind != playbook.KindCode {
				continue
			}
			templates := checkTemplates(c, entry.Value, code)
			if !templates && !strings.Contains(code, "main") && strings.TrimSpace(code) != "" {
				c.Errorf(entry.Value.Position(0), codeCodeMain, "the code defines no function main; write def main(…): with the args of the call as parameters, and return the result")
				continue
			}
			checkMain(c, call, entry.Value, code)
			if !templates {
				nodes = append(nodes, entry.Value)
			}
		}
	}
	c.compileCode(nodes)
}

// checkTemplates reports templates in code. It returns true if they prevent further checks of the code.
func checkTemplates(c *checker, node *playbook.Node, code string) bool {
	inCode := false
	for _, found := range templatesIn(code) {
		const instead = "pass the value with args, as a parameter of main"
		if found.quoted {
			c.Warnf(c.placing.positionAt(node, found.at), codeTemplateInCode, "code is not a template, so %s stays as it is; %s", playbook.ShortenText(found.text), instead)
			continue
		}
		inCode = true
		c.Errorf(c.placing.positionAt(node, found.at), codeTemplateInCode, "code is not a template, and %s is not Python; %s", playbook.ShortenText(found.text), instead)
	}
	return inCode
}

func checkMain(c *checker, call playbook.CallAt, node *playbook.Node, code string) {
	main := readMain(code)
	switch {
	case main == nil:
		return
	case main.async:
		c.Errorf(node.Position(main.at), codeCodeMain,
			"main is async, and nothing awaits it; write def main, and call async code in it with asyncio.run(…)")
		return
	}
	switch {
	case call.Sink != nil && call.Action.Args == nil:
		checkSinkMain(c, main, node)
	case call.Sink != nil:
		var s supply
		s.addNode(call.Action.Args, &s.always)
		checkArgs(c, main, node, call, s)
	case call.Spot == playbook.AtWorkbook:
		for _, step := range c.callingSteps(call.Action) {
			checkArgs(c, main, node, call, c.suppliedArgs(step, call.Action.Args, step.Action.Args))
		}
	default:
		checkArgs(c, main, node, call, c.suppliedArgs(call.Step, call.Action.Args))
		checkResult(c, main, node, call)
	}
}

// checkResult warns about a main without a result that a sink should write.
func checkResult(c *checker, main *pythonMain, node *playbook.Node, call playbook.CallAt) {
	sinks := call.Step.SuccessSinks()
	if main.returns || len(sinks) == 0 || sinks[0].Action.Args != nil {
		return
	}
	c.Warnf(node.Position(main.at), codeCodeMain, "main returns nothing, so the sink on line %d gets no rows; write return with them", sinks[0].Pos.Line)
}

// supply has the args that a call may get.
type supply struct {
	always, sometimes []*playbook.Entry
	open              bool // an expression provides further ones
}

func (s *supply) addNode(node *playbook.Node, into *[]*playbook.Entry) {
	switch {
	case node == nil:
	case node.Kind == playbook.MapNode:
		*into = append(*into, node.Entries...)
	default:
		s.open = true
	}
}

func (s *supply) hasArg(name string) bool {
	return slices.ContainsFunc(slices.Concat(s.always, s.sometimes), func(e *playbook.Entry) bool { return e.Key == name })
}

// checkSinkMain checks the main of a sink without args, which gets the result.
func checkSinkMain(c *checker, main *pythonMain, node *playbook.Node) {
	fits := main.acceptsArg("result")
	for _, param := range main.params {
		fits = fits && (param.optional || param.name == "result")
	}
	if !fits {
		c.Errorf(node.Position(main.at), codeCodeMain,
			"a sink without args calls main(result=…), but this main takes %s; write def main(result), or add args to the sink", namesOrNothing(main.paramNames()))
	}
}

// suppliedArgs returns the args of a step: its own, those of its later pages, and those of the routes that lead to
// it.
func (c *checker) suppliedArgs(step *playbook.Step, own ...*playbook.Node) supply {
	var s supply
	for _, args := range own {
		s.addNode(args, &s.always)
	}
	for next := range step.NextCalls() {
		s.addNode(next.Args, &s.sometimes)
	}
	for _, from := range c.pb.Steps {
		for _, route := range from.Next {
			for _, target := range route.Targets {
				if target.Step == step.Name {
					s.addNode(target.Args, &s.sometimes)
				}
			}
		}
	}
	return s
}

func checkArgs(c *checker, main *pythonMain, node *playbook.Node, call playbook.CallAt, s supply) {
	for _, entry := range slices.Concat(s.always, s.sometimes) {
		if !main.acceptsArg(entry.Key) {
			c.Errorf(entry.KeyPos, codeCodeMain, "main has no parameter %q; it takes %s", entry.Key, namesOrNothing(main.paramNames()))
		}
	}
	if c.partial || s.open {
		return // missing ones may be given after all
	}
	var missing, given []string
	for _, param := range main.params {
		if !param.optional && !s.hasArg(param.name) {
			missing = append(missing, fmt.Sprintf("%q", param.name))
		}
	}
	for _, entry := range s.always {
		given = append(given, entry.Key)
	}
	if len(missing) > 0 {
		c.Errorf(node.Position(main.at), codeCodeMain, "main needs %s, but the args of %s set %s", strings.Join(missing, ", "), callName(call), namesOrNothing(given))
	}
}

func namesOrNothing(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return playbook.JoinNames(names)
}

// compileCode reports code that does not compile.
func (c *checker) compileCode(nodes []*playbook.Node) {
	compiler, ok := c.tools.(CodeCompiler)
	if !ok || len(nodes) == 0 {
		return
	}
	codes := make([]string, len(nodes))
	for i, node := range nodes {
		codes[i], _ = node.Value.(string)
	}
	for i, problem := range compiler.CompilePython(codes) {
		if problem == nil || i >= len(nodes) {
			continue
		}
		c.Errorf(nodes[i].Position(offsetOfLine(codes[i], problem.Line, problem.Column)), CodeCodeSyntax, "the code does not compile: %s", problem.Message)
	}
}

// offsetOfLine returns the offset of a line and column in a text, in runes.
func offsetOfLine(text string, line, column int) int {
	at := 0
	for l := range strings.Lines(text) {
		if line--; line <= 0 {
			return at + min(max(column, 1), len([]rune(l))) - 1
		}
		at += len([]rune(l))
	}
	return 0
}
