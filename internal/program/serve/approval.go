package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/base/answers"
	"reprise/internal/base/callback"
	"reprise/internal/base/connect"
	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/workflows/protocol"
)

var (
	//go:embed approval.html
	approvalSource string
	//go:embed approval.css
	approvalStyle string

	// approvalPage is parsed when the first page is shown.
	approvalPage = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("approval").Funcs(template.FuncMap{"readable": ReadableText}).Parse(approvalSource))
	})
	// pageHeader restricts pages to showing text and posting their forms.
	pageHeader = http.Header{
		"Content-Type": {"text/html; charset=utf-8"},
		"Content-Security-Policy": {"default-src 'none'; style-src 'sha256-" + styleHash() + "'; form-action 'self'; " +
			"base-uri 'none'; frame-ancestors 'none'"},
		"X-Frame-Options":              {"DENY"},
		"Referrer-Policy":              {"no-referrer"},
		"Cross-Origin-Opener-Policy":   {"same-origin"},
		"Cross-Origin-Resource-Policy": {"same-origin"},
	}
)

func styleHash() string {
	sum := sha256.Sum256([]byte(approvalStyle))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// page is the content of a page for people.
type page struct {
	Title, Note, Fault string
	Heading            template.HTML // of a question that is open; "" is the title
	Asked              template.HTML // the title of a question that is over
	// Step is the name of the step; "" if nothing about the attempt is shown. Other empty fields are omitted.
	Run, Step, Index, Since string
	// Deadline says what happens without an answer, and when; "" if nothing does.
	Deadline       string
	Answer, By, At string // of an attempt that has its answer
	Asks           bool   // it has none yet
	Message        template.HTML
	Fields         []pageField
	Options        []string
}

// Style returns the style sheet of every page.
func (page) Style() template.CSS { return template.CSS(approvalStyle) } //nolint:gosec // ours

// pageField is an input of the form.
type pageField struct {
	ID, Name, Type, Title, Value, Fault string
	Choices                             []string
	Required                            bool
	Most                                int // characters; 0 is no bound
}

// pageAnswer renders the page as a response.
func (p page) pageAnswer(status int) (answer, error) {
	var text bytes.Buffer
	if err := approvalPage().Execute(&text, p); err != nil {
		return answer{}, fmt.Errorf("write the page: %w", err)
	}
	return answer{status: status, header: pageHeader.Clone(), body: text.Bytes()}, nil
}

// openAttempt is an attempt that the request's token belongs to.
type openAttempt struct {
	address callback.Address
	protocol.AttemptDetails
}

// pageHandler answers a request for a page. typed is the form that was posted.
type pageHandler func(r *http.Request, found openAttempt, typed url.Values) (answer, error)

// noSuchLink is shown to people whose link leads nowhere.
const noSuchLink = "Part of the link may be missing: mail programs sometimes break long links in two. Copy the whole link, or ask the sender " +
	"to send it again."

// askSender is what people who followed a link can do: they know the person who sent it, and nothing of runs.
const askSender = "ask the person who sent you this link, and mention the run and the step below."

// pageOf returns a handler that answers with pages, also if a request is refused.
func (s *Server) pageOf(handle pageHandler) func(http.ResponseWriter, *http.Request) (answer, error) {
	return func(w http.ResponseWriter, r *http.Request) (answer, error) {
		given, err := s.findApproval(w, r, handle)
		var reply *Problem
		if err == nil {
			return given, nil
		}
		if errors.As(err, &reply) && reply.Status == http.StatusNotFound {
			return page{Title: "This link does not work", Fault: noSuchLink}.pageAnswer(http.StatusNotFound)
		}
		reply = problemOf(err)
		if reply.Status >= http.StatusInternalServerError {
			s.Logger.Error("cannot show a page", "error", err)
		}
		given, err = page{Title: "Something went wrong", Fault: reply.Detail}.pageAnswer(reply.Status)
		maps.Copy(given.header, reply.header)
		return given, err
	}
}

// findApproval finds the attempt of a request's token.
func (s *Server) findApproval(w http.ResponseWriter, r *http.Request, handle pageHandler) (answer, error) {
	address, err := callback.OpenToken(s.Keys, r.PathValue("token"))
	if err != nil {
		return answer{}, notFound()
	}
	logWith(r, "workflow_id", address.Workflow)
	logWith(r, "step", address.To.Step)
	if err := sameOrigin(r); err != nil {
		return answer{}, err
	}
	typed, leave, err := s.admitForm(w, r, ofToken(address.Workflow))
	if err != nil {
		return answer{}, err
	}
	defer leave()
	found, err := s.attemptDetails(r.Context(), address)
	if err != nil {
		return answer{}, err
	}
	if found.Awaiting != nil && found.Awaiting.Approval == nil {
		return answer{}, notFound() // a webhook asks no person
	}
	return handle(r, found, typed)
}

// sameOrigin refuses forms posted from pages of other sites. Over plain HTTP, browsers send no Sec-Fetch-Site, and
// the pages make them send the origin "null": then the token alone counts.
func sameOrigin(r *http.Request) error {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "null" {
		return nil
	}
	if http.NewCrossOriginProtection().Check(r) != nil {
		return newProblem(http.StatusForbidden, "cross-origin", "the answer came from a page on another site; open the link you received and answer there")
	}
	return nil
}

// attemptDetails queries the workflow that hosts an attempt, following redirects.
func (s *Server) attemptDetails(ctx context.Context, address callback.Address) (openAttempt, error) {
	limited, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	found, workflowID := openAttempt{address: address}, address.Workflow
	for range answers.MostFollowed {
		value, err := s.Client.QueryWorkflow(limited, workflowID, "", protocol.AttemptDetailsQuery, address.To)
		if err == nil {
			found.AttemptDetails = protocol.AttemptDetails{}
			err = value.Get(&found.AttemptDetails)
		}
		switch {
		case connect.IsNotFound(err):
			return openAttempt{address: address}, nil
		case connect.QueryUnanswered(err):
			s.Logger.Warn("cannot show an approval, because no worker responds", "workflow_id", workflowID, "error", err)
			return found, newProblem(http.StatusServiceUnavailable, "no-worker",
				"the question cannot be shown because no worker is responding; nothing is lost, try again in a minute").withHeader("Retry-After", "10")
		case err != nil:
			return found, err
		case found.Elsewhere == "":
			return found, nil
		}
		workflowID = found.Elsewhere
	}
	return found, nil
}

func (s *Server) getApproval(_ *http.Request, found openAttempt, _ url.Values) (answer, error) {
	shown, err := found.approvalPage()
	if err != nil {
		return answer{}, err
	}
	if found.Awaiting != nil {
		shown.fillFields(found.Awaiting.Approval, nil, nil)
	}
	return shown.pageAnswer(http.StatusOK)
}

// approvalPage returns the page for an attempt.
func (a openAttempt) approvalPage() (page, error) {
	to := a.address.To
	shown := page{Title: "Your answer is needed", Run: cmp.Or(a.address.Run, a.address.Workflow), Step: to.Step}
	if to.Index != nil {
		shown.Index = fmt.Sprint(*to.Index)
	}
	switch {
	case a.Awaiting != nil:
		shown.Asks, shown.Options = true, a.Awaiting.Approval.Options
		shown.Since = momentText(a.Awaiting.Since)
		shown.Deadline = DescribeDeadline(a.Awaiting.Approval, a.Awaiting.Until, time.Now())
		var err error
		shown.Heading, shown.Message, err = RenderQuestion(a.Awaiting.Approval)
		shown.Title = cmp.Or(source.ShortenMiddle(strings.Join(strings.Fields(textOf(shown.Heading)), " "), shownTitle),
			source.ShortenMiddle(source.ReadableText(a.Awaiting.Question()), shownTitle), shown.Title)
		return shown, err
	case a.Answered != nil:
		shown.Title, shown.Note = "Already answered", "The answer below was accepted. There is nothing left to do. To change it, "+askSender
		shown.Answer = cmp.Or(a.Answered.Option, string(a.Answered.Verb))
		shown.By, shown.At = a.Answered.By, momentText(a.Answered.At)
	case a.Asked != nil && a.Asked.Late:
		shown.Title, shown.Note = "No longer open", describeUnanswered(*a.Asked)+" There is nothing left to do. If you did not expect this, "+askSender
	default:
		shown.Title, shown.Note = "No longer open", "No answer is needed any more: somebody else answered, the time to answer ran out, or the work was "+
			"stopped. There is nothing left to do. If you did not expect this, "+askSender
	}
	return shown, shown.addQuestion(a.Asked)
}

// addQuestion adds what was asked, of an attempt that is over; nil if it is not known.
func (p *page) addQuestion(asked *protocol.AskedQuestion) (err error) {
	if asked == nil {
		return nil
	}
	question := &playbook.Approval{Message: asked.Message, Data: asked.Data}
	p.Asked, p.Message, err = RenderQuestion(question)
	if p.Asked == "" && p.Message != "" {
		p.Asked = "Question"
	}
	return err
}

// describeUnanswered describes what applies because nobody answered in time.
func describeUnanswered(asked protocol.AskedQuestion) string {
	return fmt.Sprintf("Nobody answered by %s. Outcome: %s.", terminal.DeadlineText(asked.Until), timeoutOutcome(asked.Option))
}

func momentText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05 UTC")
}

// DescribeDeadline describes what happens unless somebody answers in time: "If nobody answers by Mon 30 Nov, 09:00 UTC (in
// 14h00m): rejected". It is "" if the attempt waits without a limit.
func DescribeDeadline(approval *playbook.Approval, until, now time.Time) string {
	if until.IsZero() {
		return ""
	}
	return fmt.Sprintf("If nobody answers by %s (%s): %s.", terminal.DeadlineText(until), durationInWords(until.Sub(now)), timeoutOutcome(approval.OnTimeout))
}

// timeoutOutcome describes what applies in place of an answer that nobody gave: an option, "" for a failure.
func timeoutOutcome(option string) string {
	switch option {
	case "":
		return "the step fails"
	case playbook.OptionReject:
		return "rejected"
	case playbook.OptionApprove:
		return "approved"
	}
	return "the answer is “" + ReadableText(option) + "”"
}

// durationInWords describes a remaining time in words.
func durationInWords(left time.Duration) string {
	switch {
	case left <= 0:
		return "now"
	case left < time.Minute:
		return "in less than a minute"
	case left < time.Hour:
		return fmt.Sprintf("in %d min", int(left.Minutes()))
	case left < 48*time.Hour:
		return fmt.Sprintf("in %dh", int(left.Round(time.Hour).Hours()))
	}
	return fmt.Sprintf("in %d days", int(left.Hours()/24))
}

// shownTitle bounds the title of a page, in characters.
const shownTitle = 120

// Names of the inputs on every page. Names of an approval's own fields begin with formPrefix.
const (
	formPrefix   = "form."
	fieldBy      = "by"
	fieldComment = "comment"
	fieldOption  = "option"
)

// fillFields sets the inputs, with typed values and errors by name.
func (p *page) fillFields(approval *playbook.Approval, typed url.Values, faults map[string]string) {
	const mostText, mostBy = 4 << 10, 500
	add := func(field pageField) {
		field.ID, field.Fault = fmt.Sprintf("field-%d", len(p.Fields)), faults[field.Name]
		if typed != nil {
			field.Value = typed.Get(field.Name)
		}
		p.Fields = append(p.Fields, field)
	}
	for _, item := range approval.Form {
		field := pageField{
			Name: formPrefix + item.Name, Type: item.Type, Title: cmp.Or(item.Title, item.Name), Choices: item.Choices,
			Required: item.Required && item.Type != "boolean",
		}
		if item.Default != nil {
			field.Value = expression.Text(item.Default)
		}
		if item.Type == "text" {
			field.Most = mostText
			if strings.Contains(field.Value, "\n") {
				field.Type = "long"
			}
		}
		add(field)
	}
	add(pageField{Name: fieldBy, Type: "text", Title: "Your name", Required: true, Most: mostBy})
	add(pageField{Name: fieldComment, Type: "long", Title: "Comment", Most: mostText})
}

func (s *Server) postApproval(r *http.Request, found openAttempt, typed url.Values) (answer, error) {
	if found.Awaiting == nil {
		return found.latePage()
	}
	given, faults := readApproval(found.Awaiting.Approval, typed)
	if len(faults) > 0 {
		return found.retryPage(typed, faults)
	}
	given.AnswerTo, given.ID = found.address.To, rand.Text()
	reply, err := s.deliverLogged(r.Context(), found.address.Workflow, given, answerAction(found.address.Workflow, given))
	var refused *Problem
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusConflict:
		if found, err = s.attemptDetails(r.Context(), found.address); err != nil {
			return answer{}, err
		}
		return found.latePage()
	case errors.As(err, &refused) && (refused.Status == http.StatusUnprocessableEntity || refused.Status == http.StatusRequestEntityTooLarge):
		return found.retryPage(typed, map[string]string{fieldOption: refused.Detail})
	case err != nil:
		return answer{}, err
	}
	if sent, _ := reply.body.(callbackAnswer); !sent.Accepted {
		return page{
			Title: "Your answer is saved", Note: "No worker is responding right now. The server keeps your answer and delivers it when a worker is back. " +
				"Open this link again later to check.",
		}.pageAnswer(http.StatusAccepted)
	}
	return answer{status: http.StatusSeeOther, header: http.Header{"Location": {"./" + r.PathValue("token")}}}, nil
}

// latePage returns the page for an answer that came too late.
func (a openAttempt) latePage() (answer, error) {
	shown, err := a.approvalPage()
	if err != nil {
		return answer{}, err
	}
	shown.Asks, shown.Fault = false, "Your answer came too late and was not accepted."
	if a.Answered != nil {
		shown.Note = ""
		shown.Fault += " The answer below counts. To change it, " + askSender
	}
	return shown.pageAnswer(http.StatusConflict)
}

// retryPage returns the page with the typed values and errors.
func (a openAttempt) retryPage(typed url.Values, faults map[string]string) (answer, error) {
	shown, err := a.approvalPage()
	if err != nil {
		return answer{}, err
	}
	shown.Fault = cmp.Or(faults[fieldOption], "Nothing was sent. Check the fields marked below.")
	shown.fillFields(a.Awaiting.Approval, typed, faults)
	return shown.pageAnswer(http.StatusUnprocessableEntity)
}

// admitForm admits a request for a page, and reads the form that it posts.
func (s *Server) admitForm(w http.ResponseWriter, r *http.Request, sender string) (typed url.Values, leave func(), err error) {
	if r.Method != http.MethodPost {
		leave, err = s.requests.enterRequest(r.Context(), sender)
		return nil, leave, err
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, nil, newProblem(http.StatusUnsupportedMediaType, "unsupported-media-type", "send the form as application/x-www-form-urlencoded")
	}
	body, leave, err := s.admitRequest(w, r, admission{arrivals: s.arrivals, slots: s.requests, sender: sender, most: MaxBody})
	if err != nil {
		return nil, nil, err
	}
	if typed, err = readForm(body); err != nil {
		leave()
		return nil, nil, err
	}
	return typed, leave, nil
}

// readForm parses a posted form.
func readForm(body []byte) (url.Values, error) {
	typed, err := readFields(body)
	if err != nil {
		return nil, err
	}
	for name, values := range typed {
		typed[name][0] = strings.ReplaceAll(values[0], "\r\n", "\n")
	}
	return typed, nil
}

// readApproval returns the typed answer, and errors by the names of the inputs.
func readApproval(approval *playbook.Approval, typed url.Values) (given interpreter.Answer, faults map[string]string) {
	given = interpreter.Answer{
		Verb: interpreter.AnswerComplete, Option: typed.Get(fieldOption), By: strings.TrimSpace(typed.Get(fieldBy)),
		Comment: strings.TrimSpace(typed.Get(fieldComment)), Form: map[string]any{},
	}
	faults = map[string]string{}
	known := []string{fieldOption, fieldBy, fieldComment}
	for _, item := range approval.Form {
		name := formPrefix + item.Name
		known = append(known, name)
		value := typed.Get(name)
		if item.Type == "boolean" {
			value = cmp.Or(value, "false") // a box that is not checked
		}
		one := &playbook.Approval{Form: []playbook.ApprovalItem{item}}
		if _, err := one.FillForm(map[string]any{item.Name: value}, given.Option == playbook.OptionReject); err != nil {
			faults[name] = err.Error()
		}
		if value != "" {
			given.Form[item.Name] = value
		}
	}
	for name := range typed {
		if !slices.Contains(known, name) {
			faults[fieldOption] = "the form has changed since you opened this page; read the question again"
		}
	}
	if given.By == "" {
		faults[fieldBy] = "enter your name"
	}
	if !slices.Contains(approval.Options, given.Option) {
		faults[fieldOption] = "choose one of the options below"
	}
	for name, part := range map[string]interpreter.Answer{fieldBy: {By: given.By}, fieldComment: {Comment: given.Comment}} {
		part.Verb = given.Verb
		if err := part.Check(); err != nil {
			faults[name] = err.Error()
		}
	}
	return given, faults
}
