package scaffold

import (
	"cmp"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/internal/program/node"
	"reprise/internal/program/recording"
	"reprise/interpreter/expression"
	"reprise/interpreter/yamltree"
)

// testFile returns the test of the playbook: a page that fails once, then all pages.
func (w *writer) testFile() []byte {
	test := node.EmptyMap()
	node.AddKey(test, "name", recording.TextNode(w.testName()))
	if workload := w.testWorkload(); len(workload.Content) > 0 {
		node.AddKey(test, "workload", workload)
	}
	if connections := w.testConnections(); len(connections.Content) > 0 {
		node.AddKey(test, "connections", connections)
	}
	answers, expect := w.testAnswers()
	node.AddKey(test, "answers", answers)
	node.AddKey(test, "expect", expect)
	top := node.EmptyMap()
	node.AddKey(top, "playbook", recording.TextNode(cmp.Or(w.File, FileName(w.made.Name))))
	node.AddKey(top, "tests", node.ListOf(test))
	return []byte(yamltree.EncodeNode(top))
}

func (w *writer) testName() string {
	switch {
	case w.paging.style == StyleExport, w.paging.style == StylePoll:
		return "a job that takes a while"
	case w.paging.style == StyleWebhook:
		return "a callback after two hours"
	case w.paging.when != "":
		return "two pages, the first after a failure"
	}
	return "a response after a failure"
}

func (w *writer) testWorkload() *yaml.Node {
	workload := node.EmptyMap()
	if w.paging.sized {
		node.AddKey(workload, pageSize, recording.ValueNode(testRows, true))
	}
	if w.element != "" && len(w.elements) != 1 {
		node.AddKey(workload, w.list, recording.ValueNode(w.elements[:1], true))
	}
	workload.Style = yaml.FlowStyle
	return workload
}

// testConnections returns made-up connections: a test sends nothing.
func (w *writer) testConnections() *yaml.Node {
	connections := node.EmptyMap()
	if login := w.of.login; login != nil {
		form := login.form
		if strings.HasPrefix(form, "{") { // whose tokens would have to be answered as well
			form = "bearer:TOKEN"
		}
		node.AddKey(connections, login.name, recording.TextNode(form))
	}
	return connections
}

// testAnswers returns the answers of the test, and what it expects.
func (w *writer) testAnswers() (answers, expect *yaml.Node) {
	switch w.paging.style {
	case StyleExport:
		return w.exportAnswers()
	case StyleWebhook:
		return w.webhookAnswers()
	case StylePoll:
		return w.pollAnswers()
	}
	key := stepName
	if w.element != "" {
		key += "[0]"
	}
	bodies := w.pageBodies()
	entries, requests := []*yaml.Node{node.FlowMap("status", recording.ValueNode(503, true))}, []*yaml.Node{node.FlowMap(), node.FlowMap()}
	for i, body := range bodies {
		entry := node.EmptyMap()
		if headers := w.paging.moreHeaders; i == 0 && len(bodies) > 1 && headers != nil {
			fields := map[string]any{}
			for name, header := range headers {
				fields[name] = header
			}
			node.AddKey(entry, "headers", recording.ValueNode(fields, true))
		}
		node.AddKey(entry, "body", recording.ValueNode(body, false))
		entries = append(entries, entry)
	}
	if len(bodies) > 1 {
		second := node.FlowMap()
		if w.paging.sent != nil {
			node.AddKey(second, "params", recording.ValueNode(w.paging.sent, true))
		}
		requests = append(requests, second)
	}
	answers = node.EmptyMap()
	node.AddKey(answers, key, node.ListOf(entries...))
	expect = w.expectedNode(len(bodies))
	node.AddKey(expect, "requests", node.FlowMap(key, node.FlowList(requests...)))
	node.AddKey(expect, "waits", node.FlowMap(key, node.FlowList(recording.TextNode("1s"))))
	return answers, expect
}

// expectedNode returns the expected status and result of the run.
func (w *writer) expectedNode(bodies int) *yaml.Node {
	expect := node.EmptyMap()
	node.AddKey(expect, "status", recording.TextNode("completed"))
	rows := testRows
	if bodies > 1 && w.found.hasRows { // else each page is one
		rows++
	}
	switch {
	case w.element != "":
		node.AddKey(expect, "result", node.FlowMap("done", recording.ValueNode(1, true), "of", recording.ValueNode(1, true)))
	case w.collectsRows(), w.found.hasRows && w.paging.when == "":
		node.AddKey(expect, "result", node.FlowMap("rows", recording.ValueNode(rows, true)))
	case w.found.hasRows: // the last page alone
		node.AddKey(expect, "result", node.FlowMap("rows", recording.ValueNode(1, true)))
	default:
		node.AddKey(expect, "result", node.FlowMap("status", recording.ValueNode(200, true)))
	}
	return expect
}

// pageBodies returns the responses of two pages, or of one without pagination.
func (w *writer) pageBodies() []any {
	answer := w.found.answer
	if !w.found.hasRows {
		if members, isMap := answer.(map[string]any); answer == nil || isMap && len(members) == 0 {
			answer = map[string]any{"id": 1}
		}
		if w.paging.when == "" {
			return []any{answer}
		}
		return []any{withMembers(setAt(answer, []string{"n"}, 1), w.paging.more), withMembers(setAt(answer, []string{"n"}, 2), w.paging.last)}
	}
	rows := madeRows(valueAt(answer, w.found.rows))
	first := setAt(answer, w.found.rows, rows[:testRows])
	if w.paging.when == "" {
		return []any{first}
	}
	second := setAt(answer, w.found.rows, rows[testRows:])
	first, second = withMembers(first, w.paging.more), withMembers(second, w.paging.last)
	if empty, _ := valueAt(second, w.found.rows).([]any); len(empty) == 0 { // the rows end with a page that has none
		first = setAt(first, w.found.rows, rows)
	}
	return []any{first, second}
}

// withMembers returns a response with other values for some members.
func withMembers(answer any, members []answerMember) any {
	for _, one := range members {
		answer = setAt(answer, one.path, one.value)
	}
	return answer
}

// madeRows returns three rows like the first one of a list, with different keys.
func madeRows(list any) []any {
	known, _ := list.([]any)
	first := any(map[string]any{"id": 1})
	if len(known) > 0 && known[0] != nil {
		first = known[0]
	}
	rows := make([]any, 0, testRows+1)
	key := keyOf([]any{first})
	for i := range testRows + 1 {
		members, isMap := first.(map[string]any)
		switch {
		case isMap && key != "":
			if number, isNumber := members[key].(int); isNumber {
				rows = append(rows, setAt(first, []string{key}, number+i))
			} else {
				rows = append(rows, setAt(first, []string{key}, fmt.Sprintf("%s-%d", expression.Text(members[key]), i+1)))
			}
		case isMap:
			rows = append(rows, setAt(first, []string{"n"}, i+1))
		default:
			rows = append(rows, fmt.Sprintf("%s-%d", expression.Text(first), i+1))
		}
	}
	return rows
}

// pollAnswers returns the answers of a job that has ended at the second poll.
func (w *writer) pollAnswers() (answers, expect *yaml.Node) {
	answer := w.found.answer
	if expression.MapOf(answer) == nil {
		answer = map[string]any{"id": "job-1"}
	}
	key := stepName
	if w.element != "" {
		key += "[0]"
	}
	open := recording.ValueNode(setAt(answer, []string{"status"}, "running"), true)
	done := recording.ValueNode(setAt(answer, []string{"status"}, "done"), true)
	answers = node.EmptyMap()
	node.AddKey(answers, key, node.ListOf(node.FlowMap("status", recording.ValueNode(503, true)), node.FlowMap("body", open), node.FlowMap("body", done)))
	expect = node.EmptyMap()
	node.AddKey(expect, "status", recording.TextNode("completed"))
	if w.element == "" {
		node.AddKey(expect, "result", node.FlowMap("status", recording.TextNode("done")))
	}
	node.AddKey(expect, "waits", node.FlowMap(key, node.FlowList(recording.TextNode("1s"), recording.TextNode("30s"))))
	return answers, expect
}
