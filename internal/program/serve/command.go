package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"reprise/internal/base/answers"
	"reprise/internal/base/audit"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/steer"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/workflows/protocol"
)

// commandPatience bounds how long a command may take. Its client may leave; the command continues, so that the audit log
// has its outcome.
const commandPatience = 30 * time.Second

// unansweredWord is the type of the problem of a command whose outcome is unknown.
const unansweredWord = "unanswered"

// commandDocument is the response of a run to a command.
type commandDocument struct {
	WorkflowID string `json:"workflow_id"`
	Command    string `json:"command"`
	// Outcome is steer.Done or steer.Unchanged.
	Outcome steer.CommandOutcome `json:"outcome"`
	Message string               `json:"message"`
}

// postCommand sends a command to a run for a caller that may steer it.
func (s *Server) postCommand(w http.ResponseWriter, r *http.Request) (answer, error) {
	caller, object, leave, err := s.admitCaller(w, r)
	if err != nil {
		return answer{}, err
	}
	defer leave()
	command, err := readCommand(r.PathValue("command"), object)
	if err != nil {
		return answer{}, err
	}
	command.By = caller.name
	id := r.PathValue("id")
	logWith(r, "command", command.Name)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), commandPatience)
	defer cancel()
	line := audit.LoggedAction{
		Actor: caller.name, Proof: caller.proof, Action: audit.ActionName(strings.ReplaceAll(command.Name, "-", "_")),
		Target: audit.ActionTarget{Run: id, Step: command.Step, Index: command.Index},
	}
	run, err := s.findAllowed(ctx, caller, MaySteer, line)
	if err != nil {
		return answer{}, err
	}
	logWith(r, "workflow_id", id)
	line.Target.Playbook, line.Target.RunID = run.playbook, run.runID
	end, err := s.beginAction(line)
	if err != nil {
		return answer{}, err
	}
	result, err := s.sendCommand(ctx, command, id, run)
	outcome := audit.Done
	if result.Outcome == steer.Unchanged {
		outcome = audit.Repeated
	}
	return answer{status: http.StatusOK, body: commandDocument{
		WorkflowID: id, Command: command.Name, Outcome: result.Outcome, Message: result.Message,
	}}, end(line.Target, outcome, err)
}

// admitCaller reads the body of a caller's request, a JSON object, and acquires a slot, which leave releases.
func (s *Server) admitCaller(w http.ResponseWriter, r *http.Request) (caller *caller, object map[string]any, leave func(), err error) {
	if caller, err = s.callerOf(r); err != nil {
		return nil, nil, nil, err
	}
	logWith(r, "caller", caller.name)
	object, leave, err = s.admitObject(w, r, caller.id)
	return caller, object, leave, err
}

// findAllowed finds the run that an action is about, for a caller that has a role for it.
func (s *Server) findAllowed(ctx context.Context, caller *caller, role CallerRole, of audit.LoggedAction) (found, error) {
	run, err := s.findRun(ctx, of.Target.Run)
	if err != nil {
		return run, err
	}
	return run, s.checkRole(caller, role, run, of)
}

// readCommand parses the body of a command, with the same rules as the commands of starter.
func readCommand(name string, object map[string]any) (steer.Command, error) {
	command := steer.Command{Name: name}
	words := map[string]word{"reason": textWord(&command.Reason)}
	settings := map[string]string{}
	switch name {
	case steer.Cancel:
	case steer.Pause, steer.Resume:
		words["step"] = textWord(&command.Step)
	case steer.RetryNow, steer.Skip:
		words["step"], words["index"] = textWord(&command.Step), indexWord(&command.Index)
	case steer.Set:
		words["step"] = textWord(&command.Step)
		words[steer.KeyConcurrency], words[steer.KeyRate] = settingWord(settings, steer.KeyConcurrency), settingWord(settings, steer.KeyRate)
	default:
		return command, notFound()
	}
	if err := readWords(name, words, object); err != nil {
		return command, err
	}
	switch {
	case len(command.Reason) > protocol.MaxSaid:
		return command, badRequest("reason has %d bytes; at most %d are kept", len(command.Reason), protocol.MaxSaid)
	case command.Index != nil && command.Step == "":
		return command, badRequest("index needs a step")
	case command.Step == "" && (name == steer.Skip || name == steer.Set):
		return command, badRequest("%s needs a step", name)
	case name == steer.Skip && strings.TrimSpace(command.Reason) == "":
		return command, badRequest("skip needs a reason: say why the failure is given up on")
	case name == steer.Set:
		return command, readSettings(&command, settings)
	}
	return command, nil
}

// settingWord returns the reader of a setting of a step, a text or a number.
func settingWord(into map[string]string, key string) word {
	return func(value any) (string, bool) {
		switch value.(type) {
		case string, int:
			into[key] = fmt.Sprint(value)
			return "", true
		}
		return "a text or a number", false
	}
}

// readSettings parses the settings of a command.
func readSettings(command *steer.Command, settings map[string]string) error {
	var texts []string
	for _, key := range []string{steer.KeyConcurrency, steer.KeyRate} {
		if text, has := settings[key]; has {
			texts = append(texts, key+"="+text)
		}
	}
	tuning, err := steer.ParseTuning(texts)
	if err != nil {
		return badRequest("%v", err)
	}
	command.Tuning = &tuning
	return nil
}

// sendCommand sends a command to a run that was found. The error says why it had no effect, or that this is unknown.
func (s *Server) sendCommand(ctx context.Context, command steer.Command, id string, run found) (steer.Result, error) {
	to, err := s.reader.Find(ctx, id, "")
	switch {
	case errors.As(err, new(*runs.UnknownError)), err == nil && (to.WorkflowID != id || to.RunID != run.runID):
		return steer.Result{}, notFound() // another run has its ID by now
	case err != nil:
		return steer.Result{}, err
	}
	dispatcher := &steer.Dispatcher{Client: s.Client, Namespace: s.Namespace, Runs: s.reader}
	result := dispatcher.SendOne(ctx, command, to)
	switch result.Outcome {
	case steer.Refused:
		return result, newProblem(http.StatusConflict, "command-refused", "%s", result.Message)
	case steer.Unknown:
		return result, newProblem(http.StatusServiceUnavailable, unansweredWord, "%s", result.Message).withHeader("Retry-After", "10")
	}
	return result, nil
}

// postAnswer answers an approval of a run for a caller that may.
func (s *Server) postAnswer(w http.ResponseWriter, r *http.Request) (_ answer, err error) {
	defer func() { logRefusal(r, err) }()
	caller, object, leave, err := s.admitCaller(w, r)
	if err != nil {
		return answer{}, err
	}
	defer leave()
	given, err := readApprovalAnswer(object)
	if err != nil {
		return answer{}, err
	}
	given.By, given.ID = caller.name, rand.Text()
	id := r.PathValue("id")
	line := answerAction(id, given)
	line.Proof = caller.proof
	run, err := s.findAllowed(r.Context(), caller, MayAnswer, line)
	if err != nil {
		return answer{}, err
	}
	logWith(r, "workflow_id", id)
	line.Target.Playbook = run.playbook
	awaited, err := s.awaitedApproval(r.Context(), id, given)
	if err != nil {
		return answer{}, err
	}
	given.AnswerTo, line.Target.Step, line.Target.Index = awaited.AttemptAddress(), awaited.Step, awaited.Index
	reply, err := s.deliverLogged(r.Context(), awaited.WorkflowID, given, line)
	if reply.status != 0 {
		reply.status = http.StatusAccepted // also of one that had come before: the attempt awaited an answer a moment ago
	}
	return reply, err
}

// readApprovalAnswer parses the body of an answer to an approval; the caller is who answers.
func readApprovalAnswer(object map[string]any) (interpreter.Answer, error) {
	given := interpreter.Answer{Verb: interpreter.AnswerComplete}
	words := map[string]word{
		"step": textWord(&given.Step), "index": indexWord(&given.Index), "option": textWord(&given.Option),
		"form": formWord(&given.Form), "comment": textWord(&given.Comment),
	}
	if err := readWords("answer", words, object); err != nil {
		return given, err
	}
	if given.Option == "" {
		return given, badRequest("answer needs option, such as approve")
	}
	if err := given.Check(); err != nil {
		return given, badRequest("%s", err)
	}
	return given, nil
}

// awaitedApproval finds the only approval that awaits an answer, among those with the step and index of an answer.
func (s *Server) awaitedApproval(ctx context.Context, id string, given interpreter.Answer) (runs.AwaitedAttempt, error) {
	awaited, _, err := s.reader.AwaitingAttempts(ctx, id, given.Step, given.Index)
	if errors.Is(err, answers.ErrNoAnswer) {
		return runs.AwaitedAttempt{}, newProblem(http.StatusServiceUnavailable, "no-worker",
			"no worker of the run responds, so it is unknown what awaits an answer; nothing was changed").withHeader("Retry-After", "10")
	}
	if err != nil {
		return runs.AwaitedAttempt{}, err
	}
	asking := lists.Filter(awaited, func(one runs.AwaitedAttempt) bool { return one.Approval != nil })
	switch len(asking) {
	case 0:
		return runs.AwaitedAttempt{}, newProblem(http.StatusConflict, "no-approval", "no approval of the run awaits this answer; it may have one already, or the run has ended")
	case 1:
		return asking[0], nil
	}
	const shown = 10
	names := lists.Map(asking[:min(len(asking), shown)], func(one runs.AwaitedAttempt) string { return render.AttemptName(one.AttemptAddress()) })
	return runs.AwaitedAttempt{}, newProblem(http.StatusConflict, "several-approvals",
		"%d approvals of the run await an answer; say with step and index which one: %s", len(asking), strings.Join(names, ", "))
}
