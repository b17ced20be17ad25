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

// test is the test of the playbook: a page that fails once, then all pages.
func (w *writer) test() []byte {
	test := node.Map()
	node.Add(test, "name", recording.Text(w.testName()))
	if workload := w.testWorkload(); len(workload.Content) > 0 {
		node.Add(test, "workload", workload)
	}
	if connections := w.testConnections(); len(connections.Content) > 0 {
		node.Add(test, "connections", connections)
	}
	answers, expect := w.answers()
	node.Add(test, "answers", answers)
	node.Add(test, "expect", expect)
	top := node.Map()
	node.Add(top, "playbook", recording.Text(cmp.Or(w.File, FileOf(w.made.Name))))
	node.Add(top, "tests", node.List(test))
	return []byte(yamltree.Encode(top))
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
	workload := node.Map()
	if w.paging.sized {
		node.Add(workload, pageSize, recording.Node(testRows, true))
	}
	if w.element != "" && len(w.elements) != 1 {
		node.Add(workload, w.list, recording.Node(w.elements[:1], true))
	}
	workload.Style = yaml.FlowStyle
	return workload
}

// testConnections are made up: a test sends nothing.
func (w *writer) testConnections() *yaml.Node {
	connections := node.Map()
	if login := w.of.login; login != nil {
		form := login.form
		if strings.HasPrefix(form, "{") { // whose tokens would have to be answered as well
			form = "bearer:TOKEN"
		}
		node.Add(connections, login.name, recording.Text(form))
	}
	return connections
}

// answers are the answers of the test, and what comes of them.
func (w *writer) answers() (answers, expect *yaml.Node) {
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
	bodies := w.bodies()
	entries, requests := []*yaml.Node{node.Flow("status", recording.Node(503, true))}, []*yaml.Node{node.Flow(), node.Flow()}
	for i, body := range bodies {
		entry := node.Map()
		if headers := w.paging.moreHeaders; i == 0 && len(bodies) > 1 && headers != nil {
			fields := map[string]any{}
			for name, header := range headers {
				fields[name] = header
			}
			node.Add(entry, "headers", recording.Node(fields, true))
		}
		node.Add(entry, "body", recording.Node(body, false))
		entries = append(entries, entry)
	}
	if len(bodies) > 1 {
		second := node.Flow()
		if w.paging.sent != nil {
			node.Add(second, "params", recording.Node(w.paging.sent, true))
		}
		requests = append(requests, second)
	}
	answers = node.Map()
	node.Add(answers, key, node.List(entries...))
	expect = w.expected(len(bodies))
	node.Add(expect, "requests", node.Flow(key, node.FlowList(requests...)))
	node.Add(expect, "waits", node.Flow(key, node.FlowList(recording.Text("1s"))))
	return answers, expect
}

// expected is the status and the result of the run.
func (w *writer) expected(bodies int) *yaml.Node {
	expect := node.Map()
	node.Add(expect, "status", recording.Text("completed"))
	rows := testRows
	if bodies > 1 && w.found.hasRows { // else each page is one
		rows++
	}
	switch {
	case w.element != "":
		node.Add(expect, "result", node.Flow("done", recording.Node(1, true), "of", recording.Node(1, true)))
	case w.collects(), w.found.hasRows && w.paging.when == "":
		node.Add(expect, "result", node.Flow("rows", recording.Node(rows, true)))
	case w.found.hasRows: // the last page alone
		node.Add(expect, "result", node.Flow("rows", recording.Node(1, true)))
	default:
		node.Add(expect, "result", node.Flow("status", recording.Node(200, true)))
	}
	return expect
}

// bodies are the answers of two pages, or of one where there are no more.
func (w *writer) bodies() []any {
	answer := w.found.answer
	if !w.found.hasRows {
		if members, isMap := answer.(map[string]any); answer == nil || isMap && len(members) == 0 {
			answer = map[string]any{"id": 1}
		}
		if w.paging.when == "" {
			return []any{answer}
		}
		return []any{with(set(answer, []string{"n"}, 1), w.paging.more), with(set(answer, []string{"n"}, 2), w.paging.last)}
	}
	rows := madeRows(at(answer, w.found.rows))
	first := set(answer, w.found.rows, rows[:testRows])
	if w.paging.when == "" {
		return []any{first}
	}
	second := set(answer, w.found.rows, rows[testRows:])
	first, second = with(first, w.paging.more), with(second, w.paging.last)
	if empty, _ := at(second, w.found.rows).([]any); len(empty) == 0 { // the rows end with a page that has none
		first = set(first, w.found.rows, rows)
	}
	return []any{first, second}
}

// with is an answer with other values of some members.
func with(answer any, members []answerMember) any {
	for _, one := range members {
		answer = set(answer, one.path, one.value)
	}
	return answer
}

// madeRows are three rows like the first of a list, which differ in their keys.
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
				rows = append(rows, set(first, []string{key}, number+i))
			} else {
				rows = append(rows, set(first, []string{key}, fmt.Sprintf("%s-%d", expression.Text(members[key]), i+1)))
			}
		case isMap:
			rows = append(rows, set(first, []string{"n"}, i+1))
		default:
			rows = append(rows, fmt.Sprintf("%s-%d", expression.Text(first), i+1))
		}
	}
	return rows
}

// pollAnswers are the answers of a job that ends with its second answer.
func (w *writer) pollAnswers() (answers, expect *yaml.Node) {
	answer := w.found.answer
	if expression.MapOf(answer) == nil {
		answer = map[string]any{"id": "job-1"}
	}
	key := stepName
	if w.element != "" {
		key += "[0]"
	}
	open := recording.Node(set(answer, []string{"status"}, "running"), true)
	done := recording.Node(set(answer, []string{"status"}, "done"), true)
	answers = node.Map()
	node.Add(answers, key, node.List(node.Flow("status", recording.Node(503, true)), node.Flow("body", open), node.Flow("body", done)))
	expect = node.Map()
	node.Add(expect, "status", recording.Text("completed"))
	if w.element == "" {
		node.Add(expect, "result", node.Flow("status", recording.Text("done")))
	}
	node.Add(expect, "waits", node.Flow(key, node.FlowList(recording.Text("1s"), recording.Text("30s"))))
	return answers, expect
}
