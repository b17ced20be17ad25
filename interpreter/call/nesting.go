package call

import (
	"cmp"
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/tree"
)

// Nesting describes the parent runs of a task, and what its child runs need. Kept in workflow history.
type Nesting struct {
	// Parents are the parent runs, outermost first.
	Parents []interpreter.Parent `json:"parents,omitempty"`
	// Depth is the number of parent runs, including those that do not wait for their child.
	Depth int `json:"depth,omitempty"`
	// Tree names the workflow that counts all descendants of the first run, and refuses those above the limit.
	Tree tree.Tree `json:"tree,omitzero"`
	// The following fields are set if the step runs another playbook. Files are the playbooks that it names, and
	// those that these name in turn.
	Files            map[string]string `json:"files,omitempty"`
	Strict           bool              `json:"strict,omitempty"`
	SearchAttributes bool              `json:"search_attributes,omitempty"`
	DeadLetters      bool              `json:"dead_letters,omitempty"`
	NextRetry        bool              `json:"next_retry,omitempty"`
	// ScheduledAt is RunInfo.ScheduledAt of the run, and Queue its Parent.Queue.
	ScheduledAt time.Time `json:"scheduled_at,omitzero"`
	Queue       string    `json:"queue,omitempty"`
	// Before are the workflow IDs of the earlier runs that the child run replaces, latest first.
	Before []string `json:"before,omitempty"`
}

// BriefParents returns the parent runs with only their run, step and control version, for the input of attempts.
func (n *Nesting) BriefParents() []interpreter.Parent {
	if n == nil || len(n.Parents) == 0 {
		return nil
	}
	return lists.Map(n.Parents, func(parent interpreter.Parent) interpreter.Parent {
		return interpreter.Parent{Run: parent.Run, Step: parent.Step, Control: interpreter.Control{Version: parent.Control.Version}}
	})
}

// Callee is the playbook that an attempt of PlaybookTool runs, with its workload.
type Callee struct {
	Name, Source string
	Workload     expression.Value
	Partition    string // key of the partition; "" for the newest
	// Wait is false if the step does not wait for the end of the run.
	Wait bool
}

// FindCallee determines the playbook that an attempt runs. Errors are final.
func (c *Config) FindCallee(in interpreter.ToolInput, files map[string]string) (Callee, *interpreter.ErrorObject) {
	callee := Callee{Workload: in.Fields[playbook.FieldWorkload], Wait: true}
	if err := MapOrNil(playbook.FieldWorkload, callee.Workload); err != nil {
		return callee, c.uncallableError("%v", err)
	}
	if wait, given := in.Fields[playbook.FieldWait]; given {
		yes, isBoolean := wait.Data.(bool)
		if !isBoolean {
			return callee, c.uncallableError("wait must be true or false, not %s", expression.TypeName(wait.Data))
		}
		callee.Wait = yes
	}
	if key, given := in.Fields[playbook.FieldPartition]; given {
		text, isText := key.Data.(string)
		if !isText || text == "" {
			return callee, c.uncallableError("partition must be the key of a partition, not %s", expression.TypeName(key.Data))
		}
		callee.Partition = text
	}
	if inner := c.Book.ResolveAction(c.Action).Inline; inner != nil {
		callee.Name, callee.Source = c.Book.File.Name+"#"+cmp.Or(c.Book.ResolveAction(c.Action).Name, c.Step.Name), inner.SourceText()
		return callee, nil
	}
	file, err := c.Book.CalledFile(c.Book.ResolveAction(c.Action), expression.Text(in.Fields[playbook.FieldName].Data))
	if err != nil {
		return callee, c.uncallableError("%v", err)
	}
	text, found := files[file]
	if !found {
		return callee, c.uncallableError("the run does not have the playbook %s; it did not exist when the run started", file)
	}
	callee.Name, callee.Source = file, text
	return callee, nil
}

func (c *Config) uncallableError(format string, args ...any) *interpreter.ErrorObject {
	return &interpreter.ErrorObject{
		Kind: interpreter.KindPlaybook, Class: interpreter.ClassFinal, Final: true, Message: c.CallPlace() + ": " + fmt.Sprintf(format, args...),
	}
}
