package scaffold

import (
	"maps"

	"gopkg.in/yaml.v3"

	"reprise/internal/program/node"
	"reprise/internal/program/recording"
	"reprise/interpreter/expression"
)

// FromStyle describes an API of a style, with the names that such APIs usually have.
func FromStyle(style string) *Description {
	d := &Description{}
	d.Method, d.Base, d.Path = "GET", "https://api.example.com", "/items"
	usual := styleOf(style)
	d.Answer, d.Accepts = usual.Answer, usual.Accepts
	switch style {
	case StyleGraphQL:
		d.Method, d.Path, d.Body = "POST", "/graphql", usual.Body
	case StylePoll:
		d.Path, d.Answer = "/jobs/{job_id}", &Response{Body: decoded(`{"id": "job-1", "status": "running"}`)}
	case StyleExport:
		d.Method, d.Path, d.Body = "POST", "/exports", map[string]any{"format": "csv"}
	case StyleWebhook:
		d.Method, d.Path, d.Body = "POST", "/imports", map[string]any{"file": "day.csv"}
	}
	d.loginBy("bearer:TOKEN@https://api.example.com")
	d.login.name = "api"
	return d
}

// styleOf is what a style usually has.
func styleOf(style string) *Description {
	d := &Description{}
	body := map[string]string{
		StylePage:    `{"data": [{"id": 1, "name": "Ada"}], "page": 1, "total_pages": 1}`,
		StyleOffset:  `{"data": [{"id": 1, "name": "Ada"}], "offset": 0, "limit": 100, "total": 1}`,
		StyleCursor:  `{"data": [{"id": 1, "name": "Ada"}], "next_cursor": null}`,
		StyleLink:    `[{"id": 1, "name": "Ada"}]`,
		StyleGraphQL: `{"data": {"items": {"nodes": [{"id": "1", "name": "Ada"}], "pageInfo": {"hasNextPage": false, "endCursor": null}}}}`,
	}[style]
	if body != "" {
		d.Answer = &Response{Body: decoded(body), Linked: style == StyleLink}
	}
	switch style {
	case StylePage:
		d.Accepts = []Pair{{"page", 1}, {"per_page", 100}}
	case StyleOffset:
		d.Accepts = []Pair{{"offset", 0}, {"limit", 100}}
	case StyleCursor:
		d.Accepts = []Pair{{"cursor", ""}, {"limit", 100}}
	case StyleGraphQL:
		d.Body = map[string]any{
			"query":     "query($after: String) {\n  items(first: 100, after: $after) {\n    nodes { id name }\n    pageInfo { hasNextPage endCursor }\n  }\n}\n",
			"variables": map[string]any{"after": nil},
		}
	}
	return d
}

// decoded is the value of a JSON that is written in this program.
func decoded(text string) any {
	value, err := expression.Decode([]byte(text))
	if err != nil {
		panic(err)
	}
	return value
}

// The steps of an export.
const (
	startStep    = "start"
	awaitStep    = "await_export"
	downloadStep = "download"
)

// exportSteps start a job, wait for its end and fetch what it has made.
func (w *writer) exportSteps() *yaml.Node {
	start, await, download := node.Map(), node.Map(), node.Map()
	node.Add(start, "step", recording.Text(startStep))
	w.request(start)
	node.Add(start, "retry", node.List(w.failurePolicy()))
	node.Add(start, "next", recording.Text(awaitStep))
	node.Add(await, "step", recording.Text(awaitStep))
	node.Add(await, "tool", recording.Text("http"))
	w.auth(await)
	node.Add(await, "url", node.Quoted(w.url()+"/{{ "+startStep+".id }}"))
	node.Add(await, "retry", node.List(w.failurePolicy(), pollPolicy("response.status"),
		policy("The job failed.", "lower(response.status) in ['failed', 'error', 'cancelled']", node.Flow("fail", node.Quoted("{{ response.error | default('the export has failed') }}")))))
	node.Add(await, "next", recording.Text(downloadStep))
	node.Add(download, "step", recording.Text(downloadStep))
	node.Add(download, "tool", recording.Text("http"))
	w.auth(download)
	node.Add(download, "url", node.Quoted("{{ "+awaitStep+".download_url | raw }}"))
	node.Add(download, "format", recording.Text("csv"))
	node.Add(download, "retry", node.List(w.failurePolicy()))
	if sink := w.sink(); sink != nil {
		node.Add(download, "sink", sink)
	}
	return node.List(start, await, download)
}

func (w *writer) auth(step *yaml.Node) {
	if w.of.login != nil {
		node.Add(step, "auth", recording.Text(w.of.login.name))
	}
}

func (w *writer) exportAnswers() (answers, expect *yaml.Node) {
	answers, expect = node.Map(), node.Map()
	accepted := node.Flow("status", recording.Node(202, true), "body", node.Flow("id", recording.Text("job-1"), "status", recording.Text("queued")))
	open := node.Flow("body", node.Flow("id", recording.Text("job-1"), "status", recording.Text("running")))
	done := node.Flow("body", node.Flow("id", recording.Text("job-1"), "status", recording.Text("done"), "download_url", recording.Text(w.of.Base+"/files/job-1.csv")))
	csv := node.Map()
	node.Add(csv, "headers", node.Flow("content-type", recording.Text("text/csv")))
	node.Add(csv, "body_text", recording.Text("id,name\n1,Ada\n2,Bob\n"))
	node.Add(answers, startStep, node.List(accepted))
	node.Add(answers, awaitStep, node.List(open, done))
	node.Add(answers, downloadStep, node.List(node.Flow("status", recording.Node(503, true)), csv))
	node.Add(expect, "status", recording.Text("completed"))
	node.Add(expect, "result", node.Flow("rows", recording.Node(2, true)))
	node.Add(expect, "waits", node.Flow(awaitStep, node.FlowList(recording.Text("30s")), downloadStep, node.FlowList(recording.Text("1s"))))
	return answers, expect
}

// webhookSteps start work elsewhere, and wait until that says how it ended.
func (w *writer) webhookSteps() *yaml.Node {
	step, request := node.Map(), node.Map()
	node.Add(step, "step", recording.Text(startStep))
	node.Add(step, "tool", recording.Text("webhook"))
	w.auth(step)
	node.Add(step, "timeout", recording.Text("4h"))
	node.Add(request, "url", node.Quoted(w.url()))
	body, _ := w.of.Body.(map[string]any)
	sent := map[string]any{"callback": node.Verbatim("{{ callback.complete }}"), "failed": node.Verbatim("{{ callback.fail }}")}
	maps.Copy(sent, body)
	node.Add(request, "body", node.Value(sent))
	node.Add(step, "on_start", request)
	node.Add(step, "retry", node.List(policy("It failed, or no callback arrived in time: start it again.", "error.kind in ['timeout', 'webhook_failure', 'explicit']",
		node.Flow("max_attempts", recording.Node(3, true), "initial_delay", recording.Text("1m")))))
	return node.List(step)
}

func (w *writer) webhookAnswers() (answers, expect *yaml.Node) {
	answers, expect = node.Map(), node.Map()
	node.Add(answers, startStep, node.List(node.Flow("complete", node.Flow("rows", recording.Node(2, true)), "after", recording.Text("2h"))))
	node.Add(expect, "status", recording.Text("completed"))
	node.Add(expect, "result", node.Flow("rows", recording.Node(2, true)))
	return answers, expect
}
