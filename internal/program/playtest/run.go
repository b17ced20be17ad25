package playtest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/workflows/protocol"
)

// Report is the result of a test.
type Report struct {
	Suite *Suite
	Test  *playbook.Test
	// Failures lists unmet expectations in the order of the file; empty if the test passed.
	Failures []Failure
	// Clock is the duration of the run by the test's clock, and Took the real time that the test took.
	Clock, Took time.Duration

	stage   *stage
	outcome outcome
}

// Result returns the result of the run; the error says why there is none.
func (r *Report) Result() (protocol.Result, error) { return r.outcome.result, r.outcome.err }

// Warnings returns the warnings of a completed run, if the test does not expect any.
func (r *Report) Warnings() []string {
	if r.outcome.err != nil || r.outcome.result.Status != interpreter.Completed || r.Test.Expect.Words.Has("warnings") {
		return nil
	}
	return r.outcome.result.Warnings
}

// Passed reports whether the run met all expectations.
func (r *Report) Passed() bool { return len(r.Failures) == 0 }

// Run runs one test.
func (s *Suite) Run(test *playbook.Test, options Options) *Report {
	began := time.Now()
	report := &Report{Suite: s, Test: test}
	defer func() { report.Took = time.Since(began) }()
	if step := s.keepsStateInPostgres(); step != "" && options.Postgres == "" {
		report.addFailure(test.Pos, "run", fmt.Sprintf("step %s keeps its state next to its rows in PostgreSQL, which a test cannot simulate; run the tests with --postgres", step))
		return report
	}
	var stage *stage
	for i, run := range append(slices.Clone(test.Before), test) {
		next, err := newStage(s, run, options, stage)
		if err != nil {
			report.addFailure(run.Pos, "run", err.Error())
			return report
		}
		if stage = next; i == 0 {
			defer func() {
				if err := next.removeFolder(); err != nil {
					report.addFailure(run.Pos, "run", err.Error())
				}
			}()
		}
		report.stage, report.outcome = stage, stage.runPlaybook()
		if run != test && !report.wentWell(run) {
			return report
		}
	}
	report.Clock = report.outcome.took
	report.Failures = append(report.Failures, stage.missFailures()...)
	if len(report.Failures) > 0 { // what the run has come to says nothing
		if report.Failures[0].Why == "" {
			report.Failures[0].Why = failedBefore(report.outcome.result.Steps)
		}
		return report
	}
	if report.outcome.err != nil {
		report.addFailure(test.Pos, "run", report.outcome.err.Error())
		return report
	}
	c := &comparison{stage: stage, test: test, outcome: report.outcome}
	c.compareAll()
	report.Failures = append(report.Failures, c.failures...)
	report.Failures = append(report.Failures, stage.unusedFailures()...)
	return report
}

// wentWell reports whether an earlier run of the test ended and used its answers.
func (r *Report) wentWell(run *playbook.Test) bool {
	r.Failures = append(r.Failures, r.stage.missFailures()...)
	if err := r.outcome.err; err != nil {
		r.addFailure(run.Pos, "before", err.Error())
	}
	if len(r.Failures) == 0 {
		r.Failures = r.stage.unusedFailures()
	}
	return len(r.Failures) == 0
}

// keepsStateInPostgres returns a step that keeps its state in PostgreSQL; "" if there is none.
func (s *Suite) keepsStateInPostgres() string {
	for _, step := range s.Book.Steps {
		if home := s.Book.StateHome(step); step.Incremental != nil && home != nil {
			if name, _ := s.Book.ResolveAction(home.Action).ToolName(); name == "postgres" {
				return step.Name
			}
		}
	}
	return ""
}

// failedBefore describes the steps that had failed when a request had no answer: the request may be a notice about
// them.
func failedBefore(records []interpreter.StepRecord) string {
	var texts []string
	for _, record := range records {
		if failure := record.Error; failure != nil && failure.Kind != interpreter.KindCancelled && failure.Type != typeTestFailed {
			texts = append(texts, fmt.Sprintf("step %s failed: %s", record.Step, failure.Message))
		}
	}
	return strings.Join(texts, "\n    ")
}

func (r *Report) addFailure(pos source.Position, what, message string) {
	r.Failures = append(r.Failures, Failure{Pos: pos, What: what, Message: message})
}

// missFailures returns the requests without an answer, and the test's own mistakes.
func (s *stage) missFailures() []Failure {
	s.script.mu.Lock()
	defer s.script.mu.Unlock()
	var all []Failure
	at := s.test.Pos
	if len(s.test.Answers) > 0 {
		at = s.test.Answers[0].Pos
	}
	for _, u := range s.script.unanswered {
		all = append(all, Failure{
			Pos: at, What: "answers." + u.who.displayName(),
			Message: fmt.Sprintf("the test has no answer for %s, attempt %d: %s", u.who.displayName(), max(u.who.attempt, 1), briefRequest(u.request)),
			Add:     fmt.Sprintf("answers:\n  %s:\n    - %s   # %s", u.who.displayName(), u.needs, briefRequest(u.request)),
		})
	}
	for _, c := range s.script.complaints {
		all = append(all, Failure{Pos: c.pos, What: "answers", Message: c.text})
	}
	return all
}

// unusedFailures returns the answers that no attempt used.
func (s *stage) unusedFailures() []Failure {
	var all []Failure
	s.script.mu.Lock()
	defer s.script.mu.Unlock()
	for _, answer := range s.script.unusedAnswers() {
		all = append(all, Failure{Pos: answer.Pos, What: "answers", Message: "the run never used this answer: " + kindOf(answer)})
	}
	for _, act := range s.test.At {
		if !s.script.performed[act] {
			all = append(all, Failure{Pos: act.Pos, What: "at", Message: fmt.Sprintf("the run ended after %s, before %s", s.sinceBegin(), act.Verb())})
		}
	}
	for _, step := range playbook.SortedKeys(s.script.lose) {
		all = append(all, Failure{Pos: s.test.Pos, What: "at", Message: fmt.Sprintf("step %s made no attempt in which its worker could be lost", step)})
	}
	return all
}

// kindOf describes an answer in a few words.
func kindOf(a *playbook.TestAnswer) string {
	switch {
	case a.IsForAwaited():
		return a.Verb()
	case a.Error != "":
		return "error " + a.Error
	case a.Lost:
		return "a lost worker"
	case a.Words.Has("result"):
		return "a result"
	case a.Status != 0:
		return fmt.Sprintf("status %d", a.Status)
	}
	return "status 200"
}

// RunAll runs tests concurrently, and returns their reports in order. each, unless nil, is called after each test,
// never concurrently.
func RunAll(all []SelectedTest, options Options, each func(*Report)) []*Report {
	reports := make([]*Report, len(all))
	var group sync.WaitGroup
	var mu sync.Mutex
	next := make(chan int)
	for range min(2*runtime.GOMAXPROCS(0), len(all)) {
		group.Go(func() {
			for i := range next {
				reports[i] = all[i].Suite.Run(all[i].Test, options)
				if each != nil {
					mu.Lock()
					each(reports[i])
					mu.Unlock()
				}
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	group.Wait()
	return reports
}

// SelectedTest is a test to run.
type SelectedTest struct {
	Suite *Suite
	Test  *playbook.Test
}

// Text returns the failure for people to read, preceded by the place in the test file.
func (f Failure) Text(file string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%s: %s", file, f.Pos, f.What)
	if strings.Contains(f.Message, "\n") || strings.HasPrefix(f.Message, "- ") {
		b.WriteString("\n" + indentText(f.Message))
	} else {
		b.WriteString(": " + f.Message)
	}
	if f.Why != "" {
		b.WriteString("\n    " + f.Why)
	}
	if f.Add != "" {
		b.WriteString("\n    add to the test:\n" + indentText(indentText(f.Add)))
	}
	return b.String()
}

func indentText(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }
