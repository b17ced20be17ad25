package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"reprise/internal/base/answers"
	"reprise/internal/base/audit"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/serve"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// shownCards bounds the awaiting attempts of one run on the page.
const shownCards = 20

// headingLength bounds a question in a heading, in characters, as serve.QuestionTitle does.
const headingLength = 120

// inboxView has the attempts that await answers.
type inboxView struct {
	Cards []card
	Left  int
	Next  string // address of the next page
	Later bool   // this is not the first page
	Notes []string
}

// card is an attempt that awaits its answer.
type card struct {
	Run, Name      string
	RunTitle       string // by what people know the run
	Title, Message template.HTML
	Question       string
	Since          string
	Deadline       string // what happens without an answer, and when
	Progress       string
	Form           []serve.FormField
	Options        []string
	Fault          string
	Command        string // of what no form answers
	Address        map[string]string
	ID             string // of the card on the page
}

func (s *Server) inboxPage(w http.ResponseWriter, r *http.Request, v *visit) error {
	v.frame.Title, v.frame.Section = "Inbox", "/inbox"
	token, err := s.pageToken(r)
	if err != nil {
		return err
	}
	shown := &inboxView{Later: len(token) > 0}
	page, err := s.inboxRuns(r, token)
	if errors.Is(err, runs.ErrNoAttributes) {
		shown.Notes = append(shown.Notes, "The server cannot find what awaits an answer: the namespace lacks search attributes. starter setup adds them.")
		err = nil
	}
	if err != nil {
		return err
	}
	for _, found := range s.awaitingOf(r.Context(), page.Runs) {
		shown.Left += found.left
		if found.err != nil {
			shown.Notes = append(shown.Notes, found.run+": no worker responds, so its question cannot be shown.")
		}
		for _, awaited := range found.awaited[:min(len(found.awaited), shownCards)] {
			one, err := newCard(found.run, awaited, v.frame.At, nil, nil)
			if err != nil {
				return err
			}
			one.RunTitle = found.title
			shown.Cards = append(shown.Cards, one)
		}
		shown.Left += max(0, len(found.awaited)-shownCards)
	}
	for i := range shown.Cards {
		shown.Cards[i].numberInputs(i, v.person)
	}
	if page.Next != nil {
		shown.Next = "/inbox?page=" + s.nextPage(page.Next)
	}
	s.writePage(w, v, http.StatusOK, "inbox", shown)
	return nil
}

// inboxRuns returns the runs of an inbox page: those that await answers, or the one in the URL.
func (s *Server) inboxRuns(r *http.Request, token []byte) (runs.Page, error) {
	id := r.URL.Query().Get("run")
	if id == "" {
		return s.Runs.Page(r.Context(), runs.Filter{Status: interpreter.Awaiting, Children: true}, callsPerPage/2, token)
	}
	found, err := s.Runs.Find(r.Context(), id, "")
	if errors.Is(err, runs.ErrNotFound) {
		return runs.Page{}, &pageError{http.StatusNotFound, "There is no run " + id + "."}
	}
	return runs.Page{Runs: []runs.Found{found}}, err
}

// awaitedOf has the attempts of a run that await answers.
type awaitedOf struct {
	run     string
	title   string
	awaited []runs.AwaitedAttempt
	left    int
	err     error
}

func (s *Server) awaitingOf(ctx context.Context, list []runs.Found) []awaitedOf {
	all := make([]awaitedOf, len(list))
	var group errgroup.Group
	for i, run := range list {
		group.Go(func() error {
			all[i].run, all[i].title = run.WorkflowID, render.RunTitle(run)
			all[i].awaited, all[i].left, all[i].err = s.Runs.AwaitingAttempts(ctx, run.WorkflowID, "", nil)
			return nil
		})
	}
	_ = group.Wait()
	return all
}

// newCard returns the card of an attempt, with typed values and errors.
func newCard(run string, awaited runs.AwaitedAttempt, now time.Time, typed url.Values, faults map[string]string) (card, error) {
	to := awaited.AttemptAddress()
	shown := card{
		Run: run, RunTitle: run, Name: render.AttemptName(to), Since: agoText(awaited.Since, now), Progress: render.DescribeProgress(&awaited.AwaitedDetails),
		Address: map[string]string{"step": to.Step, "visit": strconv.Itoa(to.Visit), "attempt": strconv.Itoa(to.Attempt)}, Fault: faults["option"],
	}
	if to.Index != nil {
		shown.Address["index"] = strconv.Itoa(*to.Index)
	}
	if awaited.Approval == nil {
		if !awaited.Until.IsZero() {
			shown.Deadline = "Fails unless it is answered by " + terminal.Time(awaited.Until) + "."
		}
		shown.Command = render.AnswerCommand(run, awaited.Step, awaited.Index, &awaited.AwaitedDetails)
		return shown, nil
	}
	shown.Deadline = serve.DescribeDeadline(awaited.Approval, awaited.Until, now)
	var err error
	shown.Title, shown.Message, err = serve.RenderQuestion(awaited.Approval)
	shown.Form, shown.Options = serve.FormOf(awaited.Approval, typed, faults), awaited.Approval.Options
	if shown.Title == "" {
		shown.Question = serve.QuestionTitle(awaited.Approval)
		if strings.TrimSpace(awaited.Approval.Message) == shown.Question && len(shown.Question) <= headingLength {
			shown.Message = "" // the heading has all of it
		}
	}
	return shown, err
}

// numberInputs makes the IDs of a card's inputs unique. A person who may only read has no form.
func (c *card) numberInputs(i int, person Person) {
	c.ID = fmt.Sprintf("card-%d", i)
	for j := range c.Form {
		c.Form[j].ID = fmt.Sprintf("%s-%s", c.ID, c.Form[j].ID)
	}
	if !person.Operator {
		c.Form, c.Options = nil, nil
	}
}

// giveAnswer sends the answer in a form of the inbox.
func (s *Server) giveAnswer(w http.ResponseWriter, r *http.Request, v *visit) error {
	run := r.PathValue("id")
	awaited, err := s.awaitedAttempt(r, run)
	if err != nil {
		return err
	}
	for name, values := range r.PostForm {
		r.PostForm[name][0] = strings.ReplaceAll(values[0], "\r\n", "\n")
	}
	given, faults := serve.TypedAnswer(awaited.Approval, r.PostForm, v.person.Name)
	if len(faults) > 0 {
		shown, err := newCard(run, awaited, v.frame.At, r.PostForm, faults)
		if err != nil {
			return err
		}
		shown.Fault = cmp.Or(shown.Fault, "Nothing was sent. Check the fields marked below.")
		shown.numberInputs(0, v.person)
		v.frame.Title, v.frame.Section = "Inbox", "/inbox"
		s.writePage(w, v, http.StatusUnprocessableEntity, "inbox", &inboxView{Cards: []card{shown}})
		return nil
	}
	if given.Option == playbook.OptionReject && r.PostForm.Get("confirmed") != "yes" {
		s.confirmAnswer(w, r, v, run, awaited)
		return nil
	}
	given.AnswerTo, given.ID = awaited.AttemptAddress(), uuid.NewString()
	said := flash{Text: answeredText(given.Option, given.By), Run: run, Done: true}
	target := audit.ActionTarget{Run: awaited.WorkflowID, Step: given.Step, Index: given.Index}
	if err := s.changes.make(v, audit.Answer, target, func(*audit.ActionTarget) (audit.ActionOutcome, error) {
		_, err := s.Runs.SendAnswer(r.Context(), awaited.WorkflowID, given)
		var refused *interpreter.AnswerError
		switch {
		case errors.As(err, &refused):
			said = flash{Text: toSentence(refused.Message), Bad: true}
		case errors.Is(err, answers.ErrClosed):
			said = flash{Text: "No answer is needed any more: the run has ended, or the time to answer is over.", Bad: true}
		case errors.Is(err, answers.ErrNoAnswer):
			said = flash{Text: "No worker responds. Nothing was sent; try again when one is back.", Bad: true}
		default:
			return audit.Done, err
		}
		return audit.Refused, nil
	}); err != nil {
		return err
	}
	s.redirectTo(w, r, v, "/inbox", said)
	return nil
}

// answeredText says who gave which answer.
func answeredText(option, by string) string {
	switch option {
	case playbook.OptionApprove:
		return "Approved by " + by + "."
	case playbook.OptionReject:
		return "Rejected by " + by + "."
	}
	return "Answered “" + serve.ReadableText(option) + "” by " + by + "."
}

// buttonText returns the text of the button for an option: playbooks that name none have two, whose names begin with a capital there.
func buttonText(option string) string {
	switch option {
	case playbook.OptionApprove:
		return "Approve"
	case playbook.OptionReject:
		return "Reject"
	}
	return terminal.Shorten(option, 100)
}

// confirmAnswer asks for confirmation of an answer that rejects something: it cannot be undone. Typed values are
// kept.
func (s *Server) confirmAnswer(w http.ResponseWriter, r *http.Request, v *visit, run string, awaited runs.AwaitedAttempt) {
	shown := struct {
		Run, Name, Question, Option, Comment, Back string
		Typed                                      map[string]string
	}{
		Run: run, Name: render.AttemptName(awaited.AttemptAddress()), Question: serve.QuestionTitle(awaited.Approval), Option: r.PostForm.Get("option"),
		Comment: r.PostForm.Get("comment"), Back: "/inbox?run=" + url.QueryEscape(run), Typed: map[string]string{},
	}
	for name, values := range r.PostForm {
		if name != "token" {
			shown.Typed[name] = values[0]
		}
	}
	v.frame.Title, v.frame.Section = "Confirm an answer", "/inbox"
	s.writePage(w, v, http.StatusOK, "confirm_answer", shown)
}

// awaitedAttempt returns the attempt that a form is about, in its current state.
func (s *Server) awaitedAttempt(r *http.Request, run string) (runs.AwaitedAttempt, error) {
	form := r.PostForm
	var index *int
	if text := form.Get("index"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return runs.AwaitedAttempt{}, &pageError{http.StatusBadRequest, "The form is incomplete."}
		}
		index = &n
	}
	all, _, err := s.Runs.AwaitingAttempts(r.Context(), run, form.Get("step"), index)
	if errors.Is(err, answers.ErrNoAnswer) {
		return runs.AwaitedAttempt{}, &pageError{http.StatusServiceUnavailable, "No worker responds. Nothing was sent; try again when one is back."}
	}
	if err != nil {
		return runs.AwaitedAttempt{}, err
	}
	for _, one := range all {
		same := one.Index == nil && index == nil || one.Index != nil && index != nil && *one.Index == *index
		if same && one.Approval != nil && one.Step == form.Get("step") && strconv.Itoa(one.Visit) == form.Get("visit") && strconv.Itoa(one.Attempt) == form.Get("attempt") {
			return one, nil
		}
	}
	return runs.AwaitedAttempt{}, &pageError{http.StatusConflict, "No answer is needed any more: somebody has answered, the time to answer is over, or the run has ended."}
}
