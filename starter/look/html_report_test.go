package look

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/render"
	"reprise/internal/observe/report"
	"reprise/internal/observe/runs"
	"reprise/internal/observe/stats"
	"reprise/internal/test/samples"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

const reported = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: patients}
workload: {api: ""}
workflow:
  - step: token
    tool: http
    url: "{{ api }}/token"
    retry: [{when: error is defined, then: {max_attempts: 5}}]
    next:
      - {when: "{{ token.kind == '<b>bold</b>' }}", then: fetch}
      - {else: audit}
  - step: fetch
    tool: http
    url: "{{ api }}/patients/{{ item }}"
    loop: {collection: [1]}
    next: audit
  - step: audit
    tool: http
    url: "{{ api }}/audit"
`

// hostileText is what somebody may have put into data.
const hostileText = "<script>fail()</script> \"'><img src=http://evil.example/x onerror=fail()> \u202egnp.exe\u2066 {{.}} </style></svg>\x1b[31m\x00\u2028"

// happening writes the events of a made-up run.
type happening struct {
	take func(runs.Event)
}

func (h happening) emit(word, step string, index *int, seconds float64, more runs.Event) {
	more.Event, more.Step, more.Index, more.Visit = word, step, index, 1
	more.At = samples.Began.Add(time.Duration(seconds * float64(time.Second)))
	more.NextRetryAt = more.At.Add(time.Duration(more.Delay * float64(time.Second)))
	h.take(more)
}

func (h happening) attempt(step string, index *int, number int, seconds, takes float64, failure *interpreter.ErrorObject) float64 {
	h.emit(runs.ActionStarted, step, index, seconds, runs.Event{Attempt: number, Page: 1})
	word := runs.ActionCompleted
	if failure != nil {
		word = runs.ActionError
	}
	h.emit(word, step, index, seconds+takes, runs.Event{Attempt: number, Page: 1, Duration: takes, Error: failure})
	return seconds + takes
}

func httpError(class interpreter.Class, status int, message string) *interpreter.ErrorObject {
	return &interpreter.ErrorObject{Class: class, Kind: "http", Status: status, Message: message}
}

// iteration makes one whose like is made every 50: it succeeds, waits for a retry or
// a limit, or fails. It gives its end.
func (h happening) iteration(index int, start float64, message string) float64 {
	done := runs.Event{Attempts: 1, Pages: 1, Status: interpreter.Completed}
	word := runs.IterationCompleted
	var first *interpreter.ErrorObject
	switch index % 50 {
	case 3, 24:
		first = httpError("retryable", 503, "HTTP 503")
	case 11:
		first = httpError("rate_limited", 429, "HTTP 429")
	case 40:
		first = httpError("final", 404, message)
		word, done = runs.IterationFailed, runs.Event{Attempts: 1, Status: interpreter.Failed, Error: first}
	}
	end := h.attempt("fetch", &index, 1, start, 0.5+float64(index%7)/10, first)
	switch index % 50 {
	case 3, 24:
		h.emit(runs.StepRetry, "fetch", &index, end, runs.Event{Reason: string(interpreter.ReasonFailure), Delay: 4, Attempt: 1})
		end = h.attempt("fetch", &index, 2, end+4, 1, nil)
		done.Attempts = 2
	case 11:
		h.emit(runs.StepRetry, "fetch", &index, end, runs.Event{Reason: string(interpreter.ReasonRateLimited), Delay: 9, Attempt: 1})
		end = h.attempt("fetch", &index, 2, end+9, 1, nil)
		done.Attempts = 2
	}
	done.Duration = end - start
	h.emit(word, "fetch", &index, end, done)
	return end
}

// reportOf makes the report of a run with so many iterations, fifty at a time.
func reportOf(t testing.TB, iterations int, message string) report.Document {
	t.Helper()
	end := samples.Began
	happened(happening{func(event runs.Event) {
		if event.At.After(end) {
			end = event.At
		}
	}}, iterations, message)
	found := runs.Found{WorkflowID: "patients-7x2k", RunID: "0197f0a4", Playbook: "patients", Status: interpreter.Running, StartedAt: samples.Began}
	timeline := report.NewTimeline(samples.Began, end)
	collector := stats.NewCollector(timeline.AddSpan)
	collector.BeginRun(found)
	happened(happening{collector.AddEvent}, iterations, message)
	collector.EndRun(end)
	book, err := interpreter.LoadPlaybook("patients.yaml", reported)
	require.NoError(t, err)
	failed := iterations / 50
	return report.Document{
		At: end, Playbook: book, Stats: collector.Stats(), Timeline: timeline, Notes: []string{message},
		Status: &runs.Status{Found: found, At: end, Warnings: []string{"5 iterations failed"}, Steps: []runs.Step{
			{Step: "token", Visit: 1, Item: runs.Item{Status: interpreter.Completed, Attempt: 2}, StartedAt: samples.Began, EndedAt: samples.Began.Add(9 * time.Second)},
			{Step: "fetch", Visit: 1, Item: runs.Item{Status: interpreter.Running}, StartedAt: samples.Began.Add(9 * time.Second), Loop: &runs.Counts{
				Total: iterations, Success: iterations - failed, Failed: failed,
			}},
			{Step: "audit", Item: runs.Item{Status: interpreter.Pending}},
		}},
	}
}

// happened tells what a run with so many iterations did.
func happened(h happening, iterations int, message string) {
	h.take(runs.Event{Event: runs.ExecutionStarted, At: samples.Began})
	h.emit(runs.StepStarted, "token", nil, 0, runs.Event{})
	h.attempt("token", nil, 1, 0, 2, httpError("retryable", 503, "HTTP 503 from GET http://api"))
	h.emit(runs.StepRetry, "token", nil, 2, runs.Event{Reason: string(interpreter.ReasonFailure), Delay: 5, Attempt: 1})
	h.attempt("token", nil, 2, 7, 2, nil)
	orders := interpreter.TableRows{Table: "public.tokens", Connection: "shop", RowTotals: interpreter.RowTotals{Written: 1234, Inserted: 1000, Updated: 234, Rejected: 2}}
	h.emit(runs.StepResult, "token", nil, 9, runs.Event{
		Status: interpreter.Completed, Attempts: 2, Pages: 1, Duration: 9, Rows: orders.ToRows().Plus(&interpreter.Rows{RowTotals: interpreter.RowTotals{Read: 1236}}),
		Incremental: &interpreter.StateRecord{State: "patients/token", Before: expression.Of("2026-02-28"), Watermark: expression.Of("2026-03-01")},
	})
	h.emit(runs.StepStarted, "fetch", nil, 9, runs.Event{})
	var free [50]float64 // when the places of the window are
	for i := range iterations {
		place := slices.Index(free[:], slices.Min(free[:]))
		start := max(9, free[place])
		h.emit(runs.IterationStarted, "fetch", &i, start, runs.Event{})
		free[place] = h.iteration(i, start, message)
	}
}

func rendered(t testing.TB, doc report.Document) string {
	t.Helper()
	var page bytes.Buffer
	require.NoError(t, writeHTML(&page, doc))
	return page.String()
}

func TestGoldenHTMLReport(t *testing.T) {
	t.Parallel()
	page := rendered(t, reportOf(t, 120, "HTTP 404 from GET http://api/patients/40"))
	samples.Golden(t, "report_html/small", samples.VisibleText(t, page))
}

// TestAReportStaysSmall: however large its run is.
func TestAReportStaysSmall(t *testing.T) {
	t.Parallel()
	page := rendered(t, reportOf(t, 100_000, "HTTP 404"))
	require.Less(t, len(page), 1<<20)
	require.LessOrEqual(t, strings.Count(page, "<title>iterations "), 40)
	require.Contains(t, page, "<title>iterations 0–4095</title>")
	require.Contains(t, samples.VisibleText(t, page), "92.0%", "2,000 failed and 6,000 were tried again")
}

// TestManyLoopsStayReadable: the more loops there are, the fewer bands has each.
func TestManyLoopsStayReadable(t *testing.T) {
	t.Parallel()
	doc := reportOf(t, 50, "HTTP 404")
	for visit := range 500 {
		for index := range 100 {
			doc.Timeline.AddSpan(stats.Span{
				Of: stats.Iteration, From: samples.Began.Add(time.Duration(index) * 100 * time.Millisecond), To: samples.Began.Add(20 * time.Second),
				Event: runs.Event{Step: "more", Visit: visit + 1, Index: &index, Status: interpreter.Completed},
			})
		}
	}
	page := rendered(t, doc)
	require.Less(t, len(page), 1<<20)
	require.LessOrEqual(t, strings.Count(page, "<title>iterations "), 200)
	require.Contains(t, samples.VisibleText(t, page), "and 302 more visits of steps")
}

// TestTheGraphHasItsPlace: where there is one, it is a picture, which runs nothing.
func TestTheGraphHasItsPlace(t *testing.T) {
	t.Parallel()
	doc := reportOf(t, 5, "HTTP 404")
	doc.Graph = `<svg id="drawn"></svg>`
	page := rendered(t, doc)
	require.Contains(t, page, `<img class="graph" src="data:image/svg&#43;xml;base64,`+base64.StdEncoding.EncodeToString([]byte(doc.Graph)))
	require.NotContains(t, page, `<svg id="drawn">`)
	require.Contains(t, page, `class="steps"`)
}

// TestHostileTextsInAReport: none becomes an element, and each character is seen.
func TestHostileTextsInAReport(t *testing.T) {
	t.Parallel()
	doc := hostileReport(t)
	page := rendered(t, doc)
	read := samples.VisibleText(t, page)
	for _, want := range []string{`<script>fail()</script> "'><img src=http://evil.example/x onerror=fail()> \u202egnp.exe\u2066`, `\u001b[31m`, `\u2028`} {
		require.Contains(t, read, want)
	}
	for _, never := range []string{"<script", "<img", "\u202e", "\u2066", "\u2028", "\x1b", "\x00", "onclick="} {
		require.NotContains(t, page, never)
	}
	for _, outside := range []string{"src=\"", "href=\"http", "@import", "url(http", "url(//"} {
		require.NotContains(t, page, outside)
	}
}

// hostileReport has the hostile text wherever a text comes from data.
func hostileReport(t testing.TB) report.Document {
	t.Helper()
	doc := reportOf(t, 60, hostileText)
	doc.Status.WorkflowID, doc.Status.Playbook, doc.Status.RunID, doc.Status.Status = hostileText, hostileText, hostileText, hostileText
	doc.Status.Warnings = []string{hostileText}
	doc.Status.Error = httpError("final", 500, hostileText)
	for i := range doc.Status.Steps {
		doc.Status.Steps[i].Error, doc.Status.Steps[i].Waiting = doc.Status.Error, hostileText
	}
	doc.Status.Steps = append(doc.Status.Steps, runs.Step{Step: hostileText, Visit: 1, Item: runs.Item{Status: hostileText}})
	doc.Playbook = nil
	doc.Input, doc.Result, doc.Commands = hostileText, hostileText, []string{hostileText}
	doc.Cause = &render.Cause{Step: hostileText, Element: hostileText, Message: hostileText, Request: hostileText, Answer: hostileText, Policy: hostileText, Body: render.Excerpt{Head: hostileText, Middle: hostileText, Tail: hostileText, Lines: 3}}
	hostileRows := interpreter.TableRows{Table: hostileText, Connection: hostileText, RowTotals: interpreter.RowTotals{Written: 1_234_567}}.ToRows()
	doc.Stats.Rows = hostileRows
	doc.Stats.Watermarks = []stats.WatermarkMove{{Step: hostileText, Before: expression.Of(hostileText), After: expression.Of("2026-03-01")}}
	for i := range doc.Stats.Steps {
		doc.Stats.Steps[i].Step, doc.Stats.Steps[i].Rows = hostileText, hostileRows
	}
	doc.Stats.Waits = []stats.Waits{{Reason: hostileText, Waits: 1}}
	doc.Stats.Errors = []stats.ErrorCount{{Class: hostileText, Kind: hostileText}}
	doc.Stats.SlowestSteps = []stats.Slow{{Step: hostileText, Status: hostileText}}
	doc.Timeline.AddSpan(stats.Span{Of: stats.Step, From: samples.Began, To: samples.Began.Add(time.Second), Event: runs.Event{Step: hostileText, Visit: 2, Status: hostileText}})
	return doc
}

func BenchmarkReport(b *testing.B) {
	for _, iterations := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(iterations), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(len(rendered(b, reportOf(b, iterations, "HTTP 404"))))/1024, "kB")
			}
		})
	}
}
