package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"reprise/internal/base/answers"
	"reprise/internal/base/audit"
	"reprise/internal/base/callback"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/mailbox"
	"reprise/interpreter/source"
)

// answerPatience bounds how long a worker may take to accept an answer. After that, the
// Temporal server keeps the answer until a worker is available.
const answerPatience = 5 * time.Second

// callbackAnswer says whether an answer to an attempt was accepted.
type callbackAnswer struct {
	// Accepted is set if the attempt has the answer; otherwise it is stored until a worker accepts it.
	Accepted bool `json:"accepted"`
	// Repeated is set if the same answer was received before.
	Repeated bool `json:"repeated,omitempty"`
}

// postCallback returns the handler for answers to attempts that await them.
func (s *Server) postCallback(verb interpreter.AnswerVerb) func(http.ResponseWriter, *http.Request) (answer, error) {
	return func(w http.ResponseWriter, r *http.Request) (_ answer, err error) {
		defer func() { logRefusal(r, err) }()
		address, err := callback.OpenToken(s.Keys, r.PathValue("token"))
		if err != nil {
			logWith(r, "token", err.Error())
			return answer{}, notFound()
		}
		logWith(r, "workflow_id", address.Workflow)
		logWith(r, "step", address.To.Step)
		object, leave, err := s.admitObject(w, r, ofToken(address.Workflow))
		if err != nil {
			return answer{}, err
		}
		defer leave()
		given, err := readAnswer(verb, object)
		if err != nil {
			return answer{}, err
		}
		given.AnswerTo, given.ID = address.To, rand.Text()
		if verb == interpreter.AnswerProgress {
			return s.progress.acceptReport(r.Context(), address.Workflow, given)
		}
		s.progress.flushBefore(r.Context(), address.Workflow, given.Key)
		return s.deliverLogged(r.Context(), address.Workflow, given, answerAction(address.Workflow, given))
	}
}

// shownRefusal bounds a refusal in the log, in characters.
const shownRefusal = 200

// logRefusal adds the reason for refusing an answer to the request's log entry, as it was sent to the client. Reasons
// contain names of fields and steps, and of the sent values at most an option.
func logRefusal(r *http.Request, err error) {
	if refused, ok := errors.AsType[*Problem](err); ok {
		logWith(r, "refused", source.CutText(refused.Detail, shownRefusal))
	}
}

// readAnswer parses the body of a callback. It refuses fields that the verb does not have.
func readAnswer(verb interpreter.AnswerVerb, object map[string]any) (interpreter.Answer, error) {
	given := interpreter.Answer{Verb: verb}
	if err := readWords(string(verb), answerWords(verb, &given), object); err != nil {
		return given, err
	}
	if _, has := object["done"]; verb == interpreter.AnswerProgress && !has {
		return given, badRequest("progress needs done, such as {\"done\": 3, \"total\": 10}")
	}
	if err := given.Check(); err != nil {
		return given, badRequest("%s", err)
	}
	return given, nil
}

// readWords reads the fields of a body. It refuses those that a request of the name does not have.
func readWords(name string, words map[string]word, object map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		read, known := words[key]
		if !known {
			fields := strings.Join(slices.Sorted(maps.Keys(words)), ", ")
			if _, has := words["result"]; has {
				fields += "; put what the other system reports into result, such as {\"result\": {\"rows\": 1200}}"
			}
			return badRequest("%s has no field %q, expected %s", name, key, fields)
		}
		if wanted, ok := read(object[key]); !ok {
			return badRequest("%s must be %s, not a %s", key, wanted, expression.TypeName(object[key]))
		}
	}
	return nil
}

// word reads a field of a body. If ok is false, wanted describes what the field must be.
type word func(value any) (wanted string, ok bool)

// textWord returns the reader of a text.
func textWord(into *string) word {
	return func(value any) (string, bool) {
		text, ok := value.(string)
		*into = text
		return "text", ok
	}
}

// indexWord returns the reader of the index of an iteration.
func indexWord(into **int) word {
	return func(value any) (string, bool) {
		n, ok := value.(int)
		*into = &n
		return "a whole number from 0", ok && n >= 0
	}
}

// formWord returns the reader of the fields of an approval.
func formWord(into *map[string]any) word {
	return func(value any) (string, bool) {
		form, ok := value.(map[string]any)
		*into = form
		return "a map", ok
	}
}

// answerWords returns the fields that a verb's body may have.
func answerWords(verb interpreter.AnswerVerb, into *interpreter.Answer) map[string]word {
	number := func(into *int64) word {
		return func(value any) (string, bool) {
			n, ok := value.(int)
			*into = int64(n)
			return "a whole number", ok
		}
	}
	value := func(into *expression.Value) word {
		return func(value any) (string, bool) {
			*into = expression.Of(value)
			return "", true
		}
	}
	switch verb {
	case interpreter.AnswerComplete:
		return map[string]word{
			"result": value(&into.Result), "option": textWord(&into.Option), "by": textWord(&into.By), "comment": textWord(&into.Comment),
			"form": formWord(&into.Form),
		}
	case interpreter.AnswerFail:
		return map[string]word{
			"message": textWord(&into.Message), "details": value(&into.Details),
			"retryable": func(value any) (string, bool) {
				yes, ok := value.(bool)
				into.Retryable = &yes
				return "true or false", ok
			},
		}
	}
	return map[string]word{"done": number(&into.Done), "total": number(&into.Total), "message": textWord(&into.Message)}
}

// deliverLogged is deliverAnswer between its lines in the audit log, of which line is the first. Progress is not logged.
func (s *Server) deliverLogged(ctx context.Context, workflowID string, given interpreter.Answer, line audit.LoggedAction) (answer, error) {
	end, err := s.beginAction(line)
	if err != nil {
		return answer{}, err
	}
	reply, err := s.deliverAnswer(ctx, workflowID, given)
	return reply, end(line.Target, answerOutcome(reply), err)
}

// deliverAnswer sends an answer to the workflow that hosts the attempt, following redirects. If no worker responds,
// or too many answers are being sent, the answer is stored; later answers queue after stored ones.
func (s *Server) deliverAnswer(ctx context.Context, workflowID string, given interpreter.Answer) (answer, error) {
	if size, most := given.SentBytes(), cmp.Or(s.MaxAnswer, interpreter.MaxInlinePayload); size > most {
		return answer{}, newProblem(http.StatusRequestEntityTooLarge, "too-large",
			"the answer is %d bytes, and a run accepts at most %d; store larger data elsewhere and send its location", size, most)
	}
	ctx = context.WithoutCancel(ctx) // the answer arrived whole, even if its sender stops waiting
	mail := mailbox.StoredAnswer{Workflow: workflowID, Answer: given}
	waiting, err := s.hasStored(ctx, mail)
	if err != nil {
		return answer{}, err
	}
	if !waiting {
		if over, ok := s.answerSlots.acquireSlot(ctx, workflowID); ok {
			defer over()
			reply, at, err := s.sendAnswer(ctx, workflowID, given)
			if !errors.Is(err, errUnsaid) {
				return reply, s.refusalOr(ctx, mail, err)
			}
			mail.Workflow = at
		}
	}
	reply, err := s.storeAnswer(ctx, mail)
	if errors.Is(err, errLate) && given.Verb != interpreter.AnswerProgress { // the workflow may have ended with it
		if reply, _, err = s.sendAnswer(ctx, mail.Workflow, given); errors.Is(err, errUnsaid) {
			err = errLate
		}
		err = s.refusalOr(ctx, mail, err)
	}
	return reply, err
}

// errUnsaid means that no workflow has replied to an answer: no worker responded, or the workflow continued as new
// meanwhile, or has ended.
var errUnsaid = errors.New("no workflow has replied to the answer")

// sendAnswer sends an answer to a workflow, and returns the outcome and the last receiver.
func (s *Server) sendAnswer(ctx context.Context, workflowID string, given interpreter.Answer) (reply answer, at string, err error) {
	accepted, at, err := answers.SendAnswer(ctx, s.Client, workflowID, given, answerPatience)
	var refused *interpreter.AnswerError
	switch {
	case err == nil && accepted.ID != given.ID:
		return answer{status: http.StatusOK, body: callbackAnswer{Accepted: true, Repeated: true}}, at, nil
	case err == nil:
		return answer{status: http.StatusAccepted, body: callbackAnswer{Accepted: true}}, at, nil
	case errors.As(err, &refused) && refused.Type == interpreter.AnswerRefused:
		return answer{}, at, errRefused(refused.Message)
	case errors.As(err, &refused):
		return answer{}, at, errLate
	}
	return answer{}, at, errUnsaid
}

// errRefused returns the problem for an answer that the step does not accept.
func errRefused(why string) error {
	return newProblem(http.StatusUnprocessableEntity, "answer-refused", "%s", why)
}

// errLate is the problem for an answer that comes too late.
var errLate = newProblem(http.StatusConflict, "answer-late", "the attempt has already ended or has a different answer; this one was not accepted")

// errFull is the problem for an answer if the mailbox is full.
var errFull = newProblem(http.StatusTooManyRequests, "answers-full",
	"%s; none has been delivered yet, try again later", answers.ErrFull).withHeader("Retry-After", "60")
