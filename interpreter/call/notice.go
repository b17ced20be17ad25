package call

import (
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// News is an event of a run that its notices report. Child runs also send it to their parents, so it is kept in
// workflow history.
type News struct {
	Event string    `json:"event"` // one of playbook.NoticeEvents; "" for a step that ended
	At    time.Time `json:"at"`
	// Step, Visit and Index locate the event; "", 0 and nil for the whole run.
	Step  string `json:"step,omitempty"`
	Visit int    `json:"visit,omitempty"`
	Index *int   `json:"index,omitempty"`
	// Status is the status of the run or step, Attempts the number of attempts that the step made.
	Status   interpreter.Status       `json:"status,omitempty"`
	Attempts int                      `json:"attempts,omitempty"`
	Error    *interpreter.ErrorObject `json:"error,omitempty"`
	// Reason and By explain an action of a person, such as a cancel.
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// exprValue returns the value of `event` in expressions, where members that the news lacks are nil.
func (n News) exprValue() map[string]any {
	value := n.briefValues()
	value["name"], value["at"], value["error"] = n.Event, expression.TimeText(n.At), n.Error.Value()
	delete(value, "event")
	for _, name := range []string{"step", "visit", "index", "status", "attempts", "reason", "by"} {
		if _, found := value[name]; !found {
			value[name] = nil
		}
	}
	return value
}

// briefValues returns what the news has, but no results, and no responses in its error: those may be large or
// confidential.
func (n News) briefValues() map[string]any {
	values := map[string]any{}
	for _, text := range [][2]string{
		{"event", n.Event}, {"step", n.Step}, {"status", string(n.Status)}, {"reason", n.Reason}, {"by", n.By},
	} {
		if text[1] != "" {
			values[text[0]] = text[1]
		}
	}
	if n.Visit > 0 {
		values["visit"], values["attempts"] = n.Visit, n.Attempts
	}
	if n.Index != nil {
		values["index"] = *n.Index
	}
	if n.Event != "" {
		values["at"] = expression.TimeText(n.At)
	}
	if failure := n.Error; failure != nil {
		short := map[string]any{"kind": string(failure.Kind), "class": string(failure.Class), "message": failure.ShortMessage()}
		if failure.Status != 0 {
			short["status"] = failure.Status
		}
		values["error"] = short
	}
	return values
}

// NewNotice builds the call of a notice that reports an event. config is the configuration of the step that the
// news is about, with the scope at its end; for news about the run it has no step. number distinguishes calls of
// one notice with the same place and visit, from 1. By default the notice sends the news; result is what its
// expressions can read as the result, hidden if the step is secret.
func NewNotice(config Config, notice *playbook.Sink, number int, news News, result any) *Call {
	if config.Step == nil {
		config.Step = &playbook.Step{}
		config.Scope = config.Scope.With(map[string]any{"event": news.exprValue(), "status": string(news.Status)})
	}
	if config.Step.Secret {
		result = playbook.Hidden
	}
	said := news.briefValues()
	said["run"], said["playbook"] = config.Run.WorkflowID, config.Run.Playbook
	config.Limits.RetriesTables = false // no data is lost with a notice
	return newSink(config, notice, request.SinkWrite{Page: number, Result: result, EveryRound: true, Says: said})
}

// NoticeFailed returns the warning about a notice that could not be sent.
func NoticeFailed(notice *playbook.Sink, failure *interpreter.ErrorObject) string {
	return fmt.Sprintf("the notice %s was not sent: %s", notice.Place, failure.ShortMessage())
}

// ExhaustedError returns the error of a policy that used up its attempts or pages, nil if there is none: the failure of
// the call, or of an iteration with its index.
func ExhaustedError(result interpreter.CallResult, iterations []interpreter.LoopError) (failure *interpreter.ErrorObject, index *int) {
	if result.Failed() && result.Error.Exhausted {
		return result.Error, nil
	}
	for _, failed := range iterations {
		if failed.Error != nil && failed.Error.Exhausted {
			return failed.Error, &failed.Index
		}
	}
	if cut := result.Cut; cut != nil {
		return &cut.Error, cut.Index
	}
	return nil, nil
}
