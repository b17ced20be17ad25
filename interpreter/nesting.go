package interpreter

import (
	"cmp"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// KindPlaybook is the kind of error of a failed run of another playbook.
const KindPlaybook Kind = "playbook"

// Parent is a parent run: one of its steps runs the playbook. Kept in workflow history.
type Parent struct {
	Run  string `json:"run"` // its workflow ID
	Step string `json:"step"`
	// Control has the controls of the parent run that its children know.
	Control Control `json:"control,omitzero"`
	// Queue is the workflow ID of the queue of the parent's concurrency key, "" if it has no slot there.
	Queue string `json:"queue,omitempty"`
}

// PausedBy lists what can pause an attempt: the control of its run, which is known up to a version, and the
// controls of parent runs. Kept in workflow history.
type PausedBy struct {
	Run     string   `json:"run"`
	Step    string   `json:"step"`
	Version int      `json:"version,omitempty"` // counts the commands that changed the control
	Parents []Parent `json:"parents,omitempty"`
}

// FailedRun returns the workflow ID of the child run that a failure of KindPlaybook comes from, the deepest that failed, and the
// message of that run's error; "" where the failure is nil or names none.
func (e *ErrorObject) FailedRun() (workflowID, cause string) {
	if e == nil || e.Kind != KindPlaybook {
		return "", ""
	}
	of, _ := e.Body.Data.(map[string]any)
	started, _ := of["workflow_id"].(string)
	deepest, _ := of["failed_in"].(string)
	cause, _ = of["cause"].(string)
	return cmp.Or(deepest, started), cause
}

// NeededFiles returns the playbooks that a call of PlaybookTool needs, directly or through other playbooks; nil for
// none.
func NeededFiles(book *playbook.Playbook, action *playbook.Action, files map[string]string) map[string]string {
	if len(files) == 0 {
		return nil
	}
	found := map[string]string{}
	gatherPlaybooks(book, action, files, found)
	return found
}

func gatherPlaybooks(book *playbook.Playbook, action *playbook.Action, files, found map[string]string) {
	if inner := action.Inline; inner != nil {
		for _, call := range inner.PlaybookCalls() {
			gatherPlaybooks(inner, call, files, found)
		}
		return
	}
	if name := action.Field(playbook.FieldName); name != nil && !name.IsConstant() {
		for _, file := range playbook.SortedKeys(files) { // which one it is becomes known when it is called
			found[file] = files[file]
		}
		return
	}
	file, err := book.CalledFile(action, expression.Text(literalValue(action.Field(playbook.FieldName))))
	text, known := files[file]
	if _, seen := found[file]; err != nil || !known || seen {
		return
	}
	found[file] = text
	inner, err := LoadPlaybook(file, text)
	if err != nil {
		return // its run will report that
	}
	for _, call := range inner.PlaybookCalls() {
		gatherPlaybooks(inner, call, files, found)
	}
}

func literalValue(node *playbook.Node) any {
	if node == nil {
		return nil
	}
	return node.Value
}
