package lsp

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"reprise/internal/base/regular"
	"reprise/internal/program/recording"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// dotted matches a path of names whose last one is being typed.
var dotted = regexp.MustCompile(`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\d+\])*)\.\w*$`)

// pathBefore returns the names and indexes that lead to the member being typed; nil if none is being typed.
func pathBefore(before string) []string {
	match := dotted.FindStringSubmatch(before)
	if match == nil {
		return nil
	}
	return strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(match[1]), ".")
}

// completeMembers proposes the members of a path, if they are known from the language or from responses in the
// playbook's tests.
func completeMembers(doc *document, line int, path []string, add func(kind protocol.CompletionItemKind, label, detail, doc, insert string)) {
	if doc.book == nil {
		return
	}
	owner := strings.Join(path, ".")
	for _, member := range check.MembersOf(doc.book, path) {
		add(protocol.CompletionItemKindField, member, "of "+owner, "", member)
	}
	step, rest := doc.resultOf(line, path)
	if step == "" {
		return
	}
	var names []string
	for _, value := range doc.stepAnswers(step) {
		names = append(names, keysBelow(value, rest)...)
	}
	slices.Sort(names)
	for _, member := range slices.Compact(names) {
		add(protocol.CompletionItemKindField, member, "of "+owner+", from the test answers of "+step, "", member)
	}
}

// resultOf returns the step whose result or response a path leads into, and the rest of the path; "" if it leads into
// none.
func (d *document) resultOf(line int, path []string) (step string, rest []string) {
	rest = path[1:]
	switch root := path[0]; {
	case root == "steps" && len(path) > 2 && path[2] == "data":
		step, rest = path[1], path[3:]
	case root == "this" && len(path) > 1 && path[1] == "data":
		step, rest = d.stepAt(line), path[2:]
	case root == "response" || root == "page":
		return d.stepAt(line), rest
	case root == "result":
		step = d.stepAt(line)
	default:
		step = root
	}
	known := d.book.Step(step)
	if known == nil || known.Loop != nil || known.Rows != nil || known.Collect != nil || slices.ContainsFunc(known.Retry, func(p *playbook.Policy) bool { return p.Then.Collect != nil }) {
		return "", nil // the result is no single answer
	}
	return step, rest
}

// stepAt returns the step that a line belongs to; "" for none.
func (d *document) stepAt(line int) string {
	name := ""
	for _, step := range stepsOf(d.text) {
		if step.line <= line {
			name = step.name
		}
	}
	return name
}

// keysBelow returns the keys of the map that a path leads to.
func keysBelow(value any, path []string) []string {
	for _, key := range path {
		switch of := value.(type) {
		case map[string]any:
			value = of[key]
		case []any:
			index, err := strconv.Atoi(key)
			if err != nil || index < 0 || index >= len(of) {
				return nil
			}
			value = of[index]
		default:
			return nil
		}
	}
	object, _ := value.(map[string]any)
	return playbook.SortedKeys(object)
}

// stepAnswers returns the responses for a step in the tests of the document, and in the recordings that they refer
// to.
func (d *document) stepAnswers(step string) []any {
	if !strings.HasPrefix(string(d.at), uri.FileScheme+"://") {
		return nil
	}
	path := d.at.Filename()
	path = strings.TrimSuffix(path, filepath.Ext(path)) + playbook.TestSuffix
	text, err := regular.Read(path)
	if err != nil || len(text) > mostBytes {
		return nil
	}
	tests, _ := playbook.DecodeTests(source.NewFile(path, text))
	if tests == nil {
		return nil
	}
	var all []any
	for _, test := range tests.Tests {
		for _, of := range test.Answers {
			if of.Place != step {
				continue
			}
			for _, one := range of.Answers {
				all = append(all, answerValues(one, filepath.Dir(path), step)...)
			}
		}
	}
	return all
}

// answerValues returns the response values of one entry in a test's answers.
func answerValues(answer *playbook.TestAnswer, folder, step string) []any {
	const firstFailure = 400
	switch {
	case answer.Recorded != "":
		recorded, err := recording.Load(filepath.Join(folder, filepath.FromSlash(answer.Recorded)))
		if err != nil {
			return nil
		}
		var all []any
		for _, entry := range recorded.StepEntries(step) {
			switch {
			case entry.Result != nil:
				all = append(all, entry.Result.Data)
			case entry.Body != nil && entry.Status < firstFailure:
				all = append(all, entry.Body.Data)
			}
		}
		return all
	case answer.Words.Has("result"):
		return []any{answer.Result}
	case answer.Status >= firstFailure:
		return nil
	}
	return []any{answer.Body}
}
