package check

import (
	"unicode/utf8"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// checkReserved reports names of steps, elements and into that expressions could not distinguish from words
// (docs/concepts/expressions.md#names).
func checkReserved(c *checker) {
	for _, named := range c.pb.HeadNames() {
		checkLength(c, named.What, named.Name, named.Pos)
	}
	for _, action := range c.pb.Workbook {
		checkLength(c, "the name of the entry", action.Name, action.Pos)
	}
	for _, step := range c.pb.Steps {
		checkName(c, "step name", step.Name, step.NamePos, step.Name)
		if loop := step.Loop; loop != nil {
			checkName(c, "element", loop.Element, elementPos(loop), step.Name)
		}
		for collect := range step.CollectSections() {
			if collect.Into != playbook.DefaultInto {
				checkName(c, "into", collect.Into, collect.Words.Place("into", collect.Pos), step.Name)
			}
		}
	}
}

func elementPos(loop *playbook.Loop) source.Position {
	return loop.Words.Place("element", loop.Words.Place("iterator", loop.Pos))
}

func checkName(c *checker, what, name string, pos source.Position, step string) {
	if name == "" {
		return // decoding has said so
	}
	if !checkLength(c, what, name, pos) {
		return
	}
	if problem := nameProblem(name); problem != "" {
		c.Errorf(pos, codeReservedName, "%s %q %s; choose another such as %q", what, name, problem, betterName(name, step))
	}
}

// checkLength reports a name that is too long. Decoding accepts it, so that runs of older playbooks continue.
func checkLength(c *checker, what, name string, pos source.Position) bool {
	n := utf8.RuneCountInString(name)
	if n > maxName {
		c.Errorf(pos, playbook.CodeBadName, "%s %q has %d characters; at most %d are allowed", what, playbook.ShortenText(name), n, maxName)
	}
	return n <= maxName
}

// betterName converts a name that is not allowed to a similar one that is.
func betterName(name, step string) string {
	var text []rune
	for _, r := range name {
		switch {
		case r < 128 && playbook.NamePattern.MatchString("a"+string(r)):
			text = append(text, r)
		case r == '-' || r == ' ' || r == '.':
			text = append(text, '_')
		}
	}
	better := string(text)
	for _, candidate := range []string{better, "_" + better, "my_" + better, step + "_" + better} {
		if candidate != name && nameProblem(candidate) == "" {
			return candidate
		}
	}
	return "my_name"
}

// FreeName returns a name for a step, an element or a workload key that hides nothing: the given one if possible,
// otherwise a similar one.
func FreeName(name string) string {
	if nameProblem(name) == "" {
		return name
	}
	return betterName(name, "my")
}

const (
	// maxName bounds a name, in characters: it is in workflow IDs and in every message.
	maxName = 64
)
