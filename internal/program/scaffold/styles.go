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
		d.Path, d.Answer = "/jobs/{job_id}", &Response{Body: decodeJSON(`{"id": "job-1", "status": "running"}`)}
	case StyleExport:
		d.Method, d.Path, d.Body = "POST", "/exports", map[string]any{"format": "csv"}
	case StyleWebhook:
		d.Method, d.Path, d.Body = "POST", "/imports", map[string]any{"file": "day.csv"}
	}
	d.loginBy("bearer:TOKEN@https://api.example.com")
	d.login.name = "api"
	return d
}

// styleOf returns the usual parameters and response of a style.
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
		d.Answer = &Response{Body: decodeJSON(body), Linked: style == StyleLink}
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

// decodeJSON decodes a JSON constant.
func decodeJSON(text string) any {
	value, err := expression.Decode([]byte(text))
	if err != nil {
		panic(err)
	}
	return value
}

// The names of the steps of an export.
const (
	startStep    = "start"
	awaitStep    = "await_export"
	downloadStep = "download"
)

// exportSteps returns the steps that start a job, wait for its end and fetch what it produced.
func (w *writer) exportSteps() *yaml.Node {
	start, await, download := node.EmptyMap(), node.EmptyMap(), node.EmptyMap()
	node.AddKey(start, "step", recording.TextNode(startStep))
	w.writeRequest(start)
	node.AddKey(start, "retry", node.ListOf(w.failurePolicy()))
	node.AddKey(start, "next", recording.TextNode(awaitStep))
	node.AddKey(await, "step", recording.TextNode(awaitStep))
	node.AddKey(await, "tool", recording.TextNode("http"))
	w.writeAuth(await)
	node.AddKey(await, "url", node.QuotedText(w.urlTemplate()+"/{{ "+startStep+".id }}"))
	node.AddKey(await, "retry", node.ListOf(w.failurePolicy(), pollPolicy("response.status"),
		policyNode("The job failed.", "lower(response.status) in ['failed', 'error', 'cancelled']", node.FlowMap("fail", node.QuotedText("{{ response.error | default('the export has failed') }}")))))
	node.AddKey(await, "next", recording.TextNode(downloadStep))
	node.AddKey(download, "step", recording.TextNode(downloadStep))
	node.AddKey(download, "tool", recording.TextNode("http"))
	w.writeAuth(download)
	node.AddKey(download, "url", node.QuotedText("{{ "+awaitStep+".download_url | raw }}"))
	node.AddKey(download, "format", recording.TextNode("csv"))
	node.AddKey(download, "retry", node.ListOf(w.failurePolicy()))
	if sink := w.sinkNode(); sink != nil {
		node.AddKey(download, "sink", sink)
	}
	return node.ListOf(start, await, download)
}

func (w *writer) writeAuth(step *yaml.Node) {
	if w.of.login != nil {
		node.AddKey(step, "auth", recording.TextNode(w.of.login.name))
	}
}

func (w *writer) exportAnswers() (answers, expect *yaml.Node) {
	answers, expect = node.EmptyMap(), node.EmptyMap()
	accepted := node.FlowMap("status", recording.ValueNode(202, true), "body", node.FlowMap("id", recording.TextNode("job-1"), "status", recording.TextNode("queued")))
	open := node.FlowMap("body", node.FlowMap("id", recording.TextNode("job-1"), "status", recording.TextNode("running")))
	done := node.FlowMap("body", node.FlowMap("id", recording.TextNode("job-1"), "status", recording.TextNode("done"), "download_url", recording.TextNode(w.of.Base+"/files/job-1.csv")))
	csv := node.EmptyMap()
	node.AddKey(csv, "headers", node.FlowMap("content-type", recording.TextNode("text/csv")))
	node.AddKey(csv, "body_text", recording.TextNode("id,name\n1,Ada\n2,Bob\n"))
	node.AddKey(answers, startStep, node.ListOf(accepted))
	node.AddKey(answers, awaitStep, node.ListOf(open, done))
	node.AddKey(answers, downloadStep, node.ListOf(node.FlowMap("status", recording.ValueNode(503, true)), csv))
	node.AddKey(expect, "status", recording.TextNode("completed"))
	node.AddKey(expect, "result", node.FlowMap("rows", recording.ValueNode(2, true)))
	node.AddKey(expect, "waits", node.FlowMap(awaitStep, node.FlowList(recording.TextNode("30s")), downloadStep, node.FlowList(recording.TextNode("1s"))))
	return answers, expect
}

// webhookSteps returns a step that starts work elsewhere, and waits until that reports its end.
func (w *writer) webhookSteps() *yaml.Node {
	step, request := node.EmptyMap(), node.EmptyMap()
	node.AddKey(step, "step", recording.TextNode(startStep))
	node.AddKey(step, "tool", recording.TextNode("webhook"))
	w.writeAuth(step)
	node.AddKey(step, "timeout", recording.TextNode("4h"))
	node.AddKey(request, "url", node.QuotedText(w.urlTemplate()))
	body, _ := w.of.Body.(map[string]any)
	sent := map[string]any{"callback": node.Verbatim("{{ callback.complete }}"), "failed": node.Verbatim("{{ callback.fail }}")}
	maps.Copy(sent, body)
	node.AddKey(request, "body", node.ValueNode(sent))
	node.AddKey(step, "on_start", request)
	node.AddKey(step, "retry", node.ListOf(policyNode("It failed, or no callback arrived in time: start it again.", "error.kind in ['timeout', 'webhook_failure', 'explicit']",
		node.FlowMap("max_attempts", recording.ValueNode(3, true), "initial_delay", recording.TextNode("1m")))))
	return node.ListOf(step)
}

func (w *writer) webhookAnswers() (answers, expect *yaml.Node) {
	answers, expect = node.EmptyMap(), node.EmptyMap()
	node.AddKey(answers, startStep, node.ListOf(node.FlowMap("complete", node.FlowMap("rows", recording.ValueNode(2, true)), "after", recording.TextNode("2h"))))
	node.AddKey(expect, "status", recording.TextNode("completed"))
	node.AddKey(expect, "result", node.FlowMap("rows", recording.ValueNode(2, true)))
	return answers, expect
}
