// Package playbook describes the tool that runs another playbook, which a workflow performs.
package playbook

import (
	"context"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

const playbookDoc = `The other playbook is written out as a list of steps (workflow), a file (path), or
one of the worker's folder of playbooks (name). It runs as a child run with a workflow
ID of its own, RUN/STEP#VISIT!ATTEMPT, in a loop RUN/STEP#VISIT/INDEX!ATTEMPT: its
status, events and dead letters are found by that. Its result is the result of the
step. Where it ends as partial_success, so does the step.

The other playbook sees nothing of this one but what workload passes to it,
laid over its own defaults. So every run explains itself.

A failure of the other run is an error of kind playbook: message names the run and
what went wrong, type is the kind of its error, class that of its error, and body is
{workflow_id, status, error, failed_in, cause}: the run, its error, and where that
comes from a deeper child run, the ID of that one and its message. Policies may retry
it, which starts another run. A run that somebody cancels by itself is a failure of
class final.

Cancelling the run cancels the other one too, and pausing it holds it, also where it
is paused at this step alone. Playbooks may call each other and themselves, 16 deep,
and 10,000 runs may start as its children, at any depth (REPRISE_RUNS_LIMIT of the worker).

A file is read where the run is started, from the folder of the file that names it,
and travels with the run: at most 100 files of 1 MiB together. A name is looked up by
the worker once, when the run begins (--playbooks); what was found is recorded, so a
file that changes meanwhile changes nothing. A name may be a template over workload;
then names lists what it may give, so that whoever may start this playbook reaches no
others with it.`

// Tool runs another playbook. A workflow does so, and no activity.
type Tool struct{}

var _ tool.Tool = Tool{}

// Spec describes the tool.
func (Tool) Spec() playbook.ToolSpec {
	return playbook.ToolSpec{
		Name:    playbook.PlaybookTool,
		Summary: "Runs another playbook as a run of its own.",
		Doc:     playbookDoc,
		Fields: []playbook.Field{
			{Name: playbook.FieldWorkflow, Kind: playbook.KindSteps, Doc: "The steps, which see each other and what workload passes."},
			{Name: playbook.FieldPath, Kind: playbook.KindLiteral, Doc: "The file, relative to the one that names it."},
			{Name: playbook.FieldName, Kind: playbook.KindText, Doc: "The name of a file in the worker's folder, without .yaml."},
			{Name: playbook.FieldNames, Kind: playbook.KindLiteral, Doc: "The names that a template in name may give."},
			{Name: playbook.FieldWorkload, Kind: playbook.KindMap, Doc: "What is passed; it overrides values of the playbook's own workload."},
			{
				Name: playbook.FieldPartition, Kind: playbook.KindText,
				Doc: "The key of the partition that the other run is about, of a playbook with partitions; default the newest that was complete when it was due or began.",
			},
			{
				Name: playbook.FieldWait, Kind: playbook.KindBoolean, Default: "true",
				Doc: "With false the step ends once the other run has started, which continues by itself; the result is {workflow_id, run_id}.",
			},
		},
		RequireOneOf: [][]string{{playbook.FieldWorkflow, playbook.FieldPath, playbook.FieldName}},
		Example: `step: each_patient
tool: playbook
loop:
  in: "{{ workload.patient_ids }}"
  iterator: patient_id
  mode: parallel
workload:
  patient_id: "{{ patient_id }}"
  api: "{{ workload.api }}"
workflow:
  - step: fetch
    tool: http
    url: "{{ api }}/patients/{{ patient_id }}"
    next: score
  - step: score
    tool: python
    args: {patient: "{{ fetch }}"}
    code: |
      def main(patient):
          return {"score": len(patient)}`,
	}
}

// Run is never called: the tool is done by a workflow.
func (Tool) Run(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error) {
	return interpreter.ToolResult{}, tool.ConfigErrorf("the tool %s is done by a workflow and has no activity", playbook.PlaybookTool)
}
