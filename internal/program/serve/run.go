package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"reprise/internal/base/audit"
	"reprise/internal/base/bookshelf"
	"reprise/internal/base/connect"
	"reprise/internal/observe/ending"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// request identifies the request that started a run. It is the run's protocol.RequestMemo, kept in workflow history.
type request struct {
	// Caller is the ID of a caller, or @ followed by the sender of a delivery.
	Caller   string `json:"caller"`
	Playbook string `json:"playbook"`
	Body     string `json:"body"` // SHA-256 of the request, hex
	// Content is the SHA-256 of the values of a delivery, hex, if its body has its ID; "" for other requests.
	Content string `json:"content,omitempty"`
}

// runDocument describes a run to callers.
type runDocument struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	StatusURL  string `json:"status_url,omitempty"`
	// Repeated is set if an earlier request started the run.
	Repeated bool               `json:"repeated,omitempty"`
	Status   interpreter.Status `json:"status"`
	// Result is set once the run has ended.
	Result   *expression.Value        `json:"result,omitempty"`
	Error    *interpreter.ErrorObject `json:"error,omitempty"`
	Warnings []string                 `json:"warnings"`

	caller string // the ID of whose run it is
}

// startRequest is a request that may start a run.
type startRequest struct {
	request

	actor    string // who starts it, by name
	proof    audit.ActorProof
	key      string // distinguishes requests of the caller
	byBody   bool   // nothing but its body makes it known
	idAdvice string // what to do if deliveries with one ID have different bodies, "" where the sender chooses the ID
	source   []byte
	workload map[string]any
	wait     time.Duration
	readable bool // the caller may read the run's status
	// instead is the response to a request that starts nothing.
	instead *answer
}

// postRun starts a run of a playbook for a caller or a sender.
func (s *Server) postRun(w http.ResponseWriter, r *http.Request) (answer, error) {
	document, wait, instead, err := s.startRun(w, r)
	switch {
	case err != nil:
		return answer{}, err
	case instead != nil:
		return *instead, nil
	}
	s.awaitEnd(r.Context(), &document, wait)
	return runAnswer(document), nil
}

// startRun reads a request and starts its run. If nothing is started, it returns a response instead.
func (s *Server) startRun(w http.ResponseWriter, r *http.Request) (runDocument, time.Duration, *answer, error) {
	order, leave, err := s.readOrder(w, r)
	if err != nil {
		return runDocument{}, 0, nil, err
	}
	defer leave()
	logWith(r, "caller", order.Caller)
	logWith(r, "playbook", order.Playbook)
	if order.instead != nil {
		return runDocument{}, 0, order.instead, nil
	}
	document, err := s.beginLogged(r.Context(), order)
	if err != nil {
		return runDocument{}, 0, nil, err
	}
	logWith(r, "workflow_id", document.WorkflowID)
	logWith(r, "repeated", document.Repeated)
	return document, order.wait, nil, nil
}

// beginLogged is beginRun between its lines in the audit log.
func (s *Server) beginLogged(ctx context.Context, order startRequest) (runDocument, error) {
	end, err := s.beginAction(order.action())
	if err != nil {
		return runDocument{}, err
	}
	document, err := s.beginRun(ctx, order)
	outcome := audit.Done
	if document.Repeated {
		outcome = audit.Repeated
	}
	target := audit.ActionTarget{Playbook: order.Playbook, Run: document.WorkflowID, RunID: document.RunID}
	return document, end(target, outcome, err)
}

// readOrder reads a request that may start a run. It acquires a slot, which leave releases. Unknown clients have
// separate slots, so that they do not delay others.
func (s *Server) readOrder(w http.ResponseWriter, r *http.Request) (order startRequest, leave func(), err error) {
	if _, has := bearerToken(r.Header); has {
		caller, err := s.callerOf(r)
		if err != nil {
			return order, nil, err
		}
		return s.requestOfCaller(caller, w, r)
	}
	// Refusing a request before its body has arrived would reveal which playbooks exist.
	body, leave, err := s.admitRequest(w, r, admission{arrivals: s.strangers, slots: s.deliveries, sender: addressOf(r.RemoteAddr), most: MaxBody})
	if err != nil {
		return order, nil, err
	}
	if order, err = s.requestOfSender(r, body); err != nil {
		leave()
	}
	return order, leave, err
}

// runAnswer returns the response about a run: 200 if it has ended or the request was repeated, else 202.
func runAnswer(document runDocument) answer {
	given := answer{status: http.StatusAccepted, body: document, header: http.Header{}}
	if document.Result != nil || document.Repeated {
		given.status = http.StatusOK
	}
	if document.StatusURL != "" {
		given.header.Set("Location", document.StatusURL)
	}
	return given
}

// requestOfCaller reads the request of a caller with a token. It acquires a slot, which leave releases.
func (s *Server) requestOfCaller(caller *caller, w http.ResponseWriter, r *http.Request) (order startRequest, leave func(), err error) {
	order = startRequest{request: request{Caller: caller.id, Playbook: r.PathValue("name")}, readable: true}
	order.actor, order.proof = caller.name, caller.proof
	if !caller.may(MayStart, order.Playbook) {
		return order, nil, s.logDenial(order.action(), notFound())
	}
	if order.source, err = s.readPlaybook(order.Playbook); err != nil {
		return order, nil, err
	}
	if order.wait, err = waitOf(r); err != nil {
		return order, nil, err
	}
	if order.key, err = idempotencyKey(r.Header); err != nil {
		return order, nil, err
	}
	if order.workload, leave, err = s.admitObject(w, r, caller.id); err != nil {
		return order, nil, err
	}
	if err = order.checkWorkload(); err != nil {
		leave()
	}
	return order, leave, err
}

// checkWorkload refuses a workload that callers must not send, and sets Body to its hash.
func (o *startRequest) checkWorkload() error {
	book, err := interpreter.LoadPlaybook(o.Playbook+".yaml", string(o.source))
	if _, forged := o.workload[playbook.TriggerKey]; forged && err == nil && len(book.Triggers) > 0 {
		return UnfitWorkload(fmt.Sprintf("%s is set by signed deliveries to this playbook; callers cannot set it", playbook.TriggerKey))
	}
	text, err := expression.Encode(o.workload)
	if err != nil {
		return badRequest("the body: %v", err)
	}
	o.Body = hashOf(text)
	return nil
}

// readPlaybook returns the text of a playbook in the folder.
func (s *Server) readPlaybook(name string) ([]byte, error) {
	if s.Playbooks == "" {
		return nil, notFound()
	}
	text, err := bookshelf.Read(s.Playbooks, name)
	if errors.Is(err, bookshelf.ErrUnknown) {
		return nil, notFound()
	}
	return text, err
}

// waitParameter is the query parameter that waitOf reads.
const waitParameter = "wait"

// waitOf returns how long a request wants to wait for the end of a run.
func waitOf(r *http.Request) (time.Duration, error) {
	values, given := r.URL.Query()[waitParameter]
	if !given {
		return 0, nil
	}
	wait, err := time.ParseDuration(values[0])
	if seconds, number := strconv.ParseFloat(values[0], 64); number == nil && seconds >= 0 && seconds <= maxWait.Seconds() {
		wait, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || wait < 0 || wait > maxWait {
		return 0, badRequest("wait must be a duration of at most %s, such as 30s", maxWait)
	}
	return wait, nil
}

// keyHeader is the header with which a request can be repeated without effect.
const keyHeader = "Idempotency-Key"

// printable matches valid idempotency keys.
var printable = regexp.MustCompile(`^[!-~]([ -~]{0,253}[!-~])?$`)

func idempotencyKey(header http.Header) (string, error) {
	values := header.Values(keyHeader)
	switch {
	case len(values) == 0:
		return rand.Text(), nil
	case len(values) > 1 || !printable.MatchString(values[0]):
		return "", badRequest("%s must occur once and have at most 255 printable ASCII characters", keyHeader)
	}
	return values[0], nil
}

// plain matches keys that can be part of a workflow ID unchanged.
var plain = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// workflowID returns the workflow ID of the run, which is the same for requests of a caller with the same key. Names
// of callers and plain keys contain neither : nor ~.
func (o startRequest) workflowID() string {
	key := o.key
	if !plain.MatchString(key) {
		key = "~" + hashOf([]byte(key))
	}
	return fmt.Sprintf("%s:%s:%s", o.Playbook, o.Caller, key)
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// bodyWindow is the time within which another delivery with the same body counts as the same one.
const bodyWindow = 24 * time.Hour

// onDay returns the order of a delivery that is identified by its body, with its key for the day of a time.
func (o startRequest) onDay(at time.Time) startRequest {
	o.key = hashOf([]byte(o.key + "\n" + at.UTC().Format(time.DateOnly)))
	return o
}

// beginOnce starts a run for a delivery that is identified by its body, unless one within bodyWindow has started a
// run. Whether that was the same delivery is unknown, so it is not reported as success.
func (s *Server) beginOnce(ctx context.Context, order startRequest) (runDocument, error) {
	now := s.Now()
	yesterday := order.onDay(now.Add(-bodyWindow)).workflowID()
	run, err := s.findOwn(ctx, yesterday)
	var absent *Problem
	switch {
	case err == nil && now.Sub(run.startedAt) < bodyWindow:
		return runDocument{}, sameBody(yesterday, run.startedAt)
	case err != nil && !errors.As(err, &absent):
		return runDocument{}, err
	}
	order = order.onDay(now)
	order.byBody = false
	document, err := s.beginRun(ctx, order)
	if err == nil && document.Repeated {
		run, err := s.findOwn(ctx, document.WorkflowID)
		return runDocument{}, cmp.Or[error](err, sameBody(document.WorkflowID, run.startedAt))
	}
	return document, err
}

func sameBody(workflowID string, at time.Time) error {
	return newProblem(http.StatusConflict, "same-body", "a delivery with this body already started run %s at %s, so nothing was started: "+
		"within %s, an equal body counts as the same delivery. If the sender gives each delivery an ID in a header, name that header: "+
		"identity: header NAME in metadata.triggers", workflowID, at.UTC().Format(time.RFC3339), bodyWindow)
}

// beginRun starts a run, or finds the one that an earlier request started.
func (s *Server) beginRun(ctx context.Context, order startRequest) (runDocument, error) {
	if order.byBody {
		return s.beginOnce(ctx, order)
	}
	document := runDocument{WorkflowID: order.workflowID(), Status: interpreter.Running, Warnings: []string{}, caller: order.Caller}
	if order.readable {
		document.StatusURL = "/v1/runs/" + url.PathEscape(document.WorkflowID)
	}
	begun, err := s.Start(ctx, Order{
		WorkflowID: document.WorkflowID, File: order.Playbook + ".yaml", Source: order.source, Workload: order.workload,
		Memo: map[string]any{protocol.RequestMemo: order.request},
	})
	var earlier *StartedError
	switch {
	case err == nil:
		document.RunID, document.Warnings = begun.RunID, append(document.Warnings, begun.Warnings...)
		return document, nil
	case !errors.As(err, &earlier):
		return document, err
	}
	run, err := s.findOwn(ctx, document.WorkflowID)
	if err != nil {
		return document, err
	}
	if err := order.compareWith(document.WorkflowID, run); err != nil {
		s.Logger.Warn("a request was refused", "playbook", order.Playbook, "caller", order.Caller, "workflow_id", document.WorkflowID, "error", err)
		return document, err
	}
	document.RunID, document.Repeated = run.runID, true
	if run.ended {
		ended := document
		s.awaitEnd(ctx, &ended, endedPatience)
		document.Status = ended.Status
	}
	return document, nil
}

// compareWith returns an error unless a run was started by the same request.
func (o startRequest) compareWith(workflowID string, run found) error {
	same := o.request
	same.Content = run.Content
	switch {
	case run.request != same:
		return newProblem(http.StatusUnprocessableEntity, "key-reused", "an earlier request used this key with a different body; use a new key")
	case run.Content != "" && run.Content != o.Content: // a run of an earlier version has none
		return newProblem(http.StatusConflict, "id-reused", "a delivery with this ID and another body started run %s at %s, so nothing was started%s",
			workflowID, run.startedAt.UTC().Format(time.RFC3339), o.idAdvice)
	}
	return nil
}

// found is a run on the Temporal server.
type found struct {
	request // zero if the run was not started through this API

	playbook  string // see findRun
	runID     string // the first of its chain
	startedAt time.Time
	ended     bool
}

// usableIDs matches the workflow IDs that the Temporal server accepts. It fails differently for some other texts.
var usableIDs = regexp.MustCompile(`^[^\x00-\x1f\x7f]{1,1000}$`)

// findOwn finds a run that was started through this API; the error is notFound if there is none.
func (s *Server) findOwn(ctx context.Context, workflowID string) (found, error) {
	run, err := s.findRun(ctx, workflowID)
	if err == nil && run.Caller == "" {
		return found{}, notFound()
	}
	return run, err
}

// findRun finds a run; the error is notFound if there is none. Its playbook is NAME of the file NAME.yaml that was started
// through this API, else the name in metadata.
func (s *Server) findRun(ctx context.Context, workflowID string) (found, error) {
	if !utf8.ValidString(workflowID) || !usableIDs.MatchString(workflowID) {
		return found{}, notFound()
	}
	described, err := s.Client.DescribeWorkflowExecution(ctx, workflowID, "")
	if connect.IsUnknownID(err) {
		return found{}, notFound()
	}
	if err != nil {
		return found{}, fmt.Errorf("look for the run %s: %w", workflowID, err)
	}
	info := described.GetWorkflowExecutionInfo()
	run := found{
		runID: cmp.Or(info.GetFirstRunId(), info.GetExecution().GetRunId()), startedAt: info.GetStartTime().AsTime(),
		ended: info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}
	if info.GetType().GetName() != protocol.PlaybookWorkflowName {
		return found{}, notFound()
	}
	if memo := info.GetMemo().GetFields()[protocol.RequestMemo]; memo != nil {
		if err := converter.GetDefaultDataConverter().FromPayload(memo, &run.request); err != nil {
			return found{}, notFound()
		}
	}
	run.playbook = run.Playbook
	if name := info.GetSearchAttributes().GetIndexedFields()[protocol.PlaybookAttribute]; run.playbook == "" && name != nil {
		if err := converter.GetDefaultDataConverter().FromPayload(name, &run.playbook); err != nil {
			return found{}, notFound()
		}
	}
	return run, nil
}

// getRun responds with the status of a run to the caller that started it, or may read it.
func (s *Server) getRun(w http.ResponseWriter, r *http.Request) (answer, error) {
	caller, err := s.callerOf(r)
	if err != nil {
		return answer{}, err
	}
	logWith(r, "caller", caller.name)
	wait, err := waitOf(r)
	if err != nil {
		return answer{}, err
	}
	run, err := s.findFor(r.Context(), caller, r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	document := runDocument{WorkflowID: r.PathValue("id"), RunID: run.runID, Status: interpreter.Running, Warnings: []string{}, caller: caller.id}
	logWith(r, "workflow_id", document.WorkflowID)
	if run.ended {
		wait = max(wait, endedPatience)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the client may wait
	s.awaitEnd(r.Context(), &document, wait)
	if run.ended && document.Result == nil {
		return answer{}, newProblem(http.StatusServiceUnavailable, "unavailable", "the outcome of the run cannot be read right now; try again").withHeader("Retry-After", "5")
	}
	return answer{status: http.StatusOK, body: document}, nil
}

// findFor finds a run that a caller started, or may read.
func (s *Server) findFor(ctx context.Context, caller *caller, workflowID string) (found, error) {
	leave, err := s.requests.enterRequest(ctx, caller.id)
	if err != nil {
		return found{}, err
	}
	defer leave()
	run, err := s.findRun(ctx, workflowID)
	if err != nil || run.Caller == caller.id {
		return run, err
	}
	return run, s.checkRole(caller, MayRead, run, audit.LoggedAction{Action: audit.Read, Target: audit.ActionTarget{Run: workflowID}})
}

// checkRole returns an error if a caller does not have a role for a run, and writes that to the audit log. of is what it
// wants to do.
func (s *Server) checkRole(caller *caller, role CallerRole, run found, of audit.LoggedAction) error {
	if caller.may(role, run.playbook) {
		return nil
	}
	of.Actor, of.Proof, of.Target.Playbook = caller.name, caller.proof, run.playbook
	return s.logDenial(of, notFound())
}

// endedPatience bounds how long reading the end of a run may take.
const endedPatience = 10 * time.Second

// awaitEnd waits for the end of a run, for a limited time. If the run is still open, or cannot be queried, the
// document is left unchanged. Waits end when the server stops.
func (s *Server) awaitEnd(ctx context.Context, document *runDocument, wait time.Duration) {
	if wait == 0 {
		return
	}
	leave, ok := s.waits.acquireSlot(ctx, document.caller)
	if !ok {
		return // too many wait; the caller can repeat its request
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	result, err := ending.WaitForResult(ctx, s.Client.GetWorkflow(ctx, document.WorkflowID, document.RunID))
	switch {
	case err == nil:
		document.Status, document.Error = result.Status, result.Error
		document.Warnings = append(document.Warnings, result.Warnings...)
		document.Result = &result.Result
	case errors.Is(err, ending.ErrNoResult) || errors.Is(err, ending.ErrRefused):
		document.Status, document.Result = interpreter.Failed, &expression.Value{}
		document.Error = &interpreter.ErrorObject{Kind: "no_result", Class: interpreter.ClassFinal, Message: err.Error()}
	case ctx.Err() == nil && !connect.IsUnreachable(err):
		s.Logger.Warn("cannot read the outcome of a run", "workflow_id", document.WorkflowID, "error", err)
	}
}
