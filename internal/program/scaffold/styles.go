package scaffold

import (
	"maps"

	"gopkg.in/yaml.v3"

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
	start, await, download := mapping(), mapping(), mapping()
	add(start, "step", recording.Text(startStep))
	w.request(start)
	add(start, "retry", sequence(w.failurePolicy()))
	add(start, "next", recording.Text(awaitStep))
	add(await, "step", recording.Text(awaitStep))
	add(await, "tool", recording.Text("http"))
	w.auth(await)
	add(await, "url", quoted(w.url()+"/{{ "+startStep+".id }}"))
	add(await, "retry", sequence(w.failurePolicy(), pollPolicy("response.status"),
		policy("It has failed.", "lower(response.status) in ['failed', 'error', 'cancelled']", flow("fail", quoted("{{ response.error | default('the export has failed') }}")))))
	add(await, "next", recording.Text(downloadStep))
	add(download, "step", recording.Text(downloadStep))
	add(download, "tool", recording.Text("http"))
	w.auth(download)
	add(download, "url", quoted("{{ "+awaitStep+".download_url | raw }}"))
	add(download, "format", recording.Text("csv"))
	add(download, "retry", sequence(w.failurePolicy()))
	if sink := w.sink(); sink != nil {
		add(download, "sink", sink)
	}
	return sequence(start, await, download)
}

func (w *writer) auth(step *yaml.Node) {
	if w.of.login != nil {
		add(step, "auth", recording.Text(w.of.login.name))
	}
}

func (w *writer) exportAnswers() (answers, expect *yaml.Node) {
	answers, expect = mapping(), mapping()
	accepted := flow("status", recording.Node(202, true), "body", flow("id", recording.Text("job-1"), "status", recording.Text("queued")))
	open := flow("body", flow("id", recording.Text("job-1"), "status", recording.Text("running")))
	done := flow("body", flow("id", recording.Text("job-1"), "status", recording.Text("done"), "download_url", recording.Text(w.of.Base+"/files/job-1.csv")))
	csv := mapping()
	add(csv, "headers", flow("content-type", recording.Text("text/csv")))
	add(csv, "body_text", recording.Text("id,name\n1,Ada\n2,Bob\n"))
	add(answers, startStep, sequence(accepted))
	add(answers, awaitStep, sequence(open, done))
	add(answers, downloadStep, sequence(flow("status", recording.Node(503, true)), csv))
	add(expect, "status", recording.Text("completed"))
	add(expect, "result", flow("rows", recording.Node(2, true)))
	add(expect, "waits", flow(awaitStep, flowList(recording.Text("30s")), downloadStep, flowList(recording.Text("1s"))))
	return answers, expect
}

// webhookSteps start work elsewhere, and wait until that says how it ended.
func (w *writer) webhookSteps() *yaml.Node {
	step, request := mapping(), mapping()
	add(step, "step", recording.Text(startStep))
	add(step, "tool", recording.Text("webhook"))
	w.auth(step)
	add(step, "timeout", recording.Text("4h"))
	add(request, "url", quoted(w.url()))
	body, _ := w.of.Body.(map[string]any)
	sent := map[string]any{"callback": template("{{ callback.complete }}"), "failed": template("{{ callback.fail }}")}
	maps.Copy(sent, body)
	add(request, "body", value(sent))
	add(step, "on_start", request)
	add(step, "retry", sequence(policy("It failed, or nobody has answered in time: start it again.", "error.kind in ['timeout', 'webhook_failure', 'explicit']",
		flow("max_attempts", recording.Node(3, true), "initial_delay", recording.Text("1m")))))
	return sequence(step)
}

func (w *writer) webhookAnswers() (answers, expect *yaml.Node) {
	answers, expect = mapping(), mapping()
	add(answers, startStep, sequence(flow("complete", flow("rows", recording.Node(2, true)), "after", recording.Text("2h"))))
	add(expect, "status", recording.Text("completed"))
	add(expect, "result", flow("rows", recording.Node(2, true)))
	return answers, expect
}
