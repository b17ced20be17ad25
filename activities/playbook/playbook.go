// Package playbook describes the tool that runs another playbook, which a workflow performs.
package playbook

import (
	"context"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

const playbookDoc = `The other playbook is a list of steps (workflow), a file (path), or a playbook in the
worker's folder (name). It runs as a child run with its own workflow ID,
RUN/STEP#VISIT!ATTEMPT, in a loop RUN/STEP#VISIT/INDEX!ATTEMPT; use that ID for its
status, events and dead letters. Its result is the result of the step. If it ends as
partial_success, so does the step.

The other playbook sees nothing of this one except the values in workload, which
override its defaults.

If the other run fails, the error has kind playbook. Its message names the run and the
problem, its type is the kind of that run's error, and its class is that of that error.
Its body is {workflow_id, status, error, failed_in, cause}: the run and its error, and,
if the error comes from a deeper child run, the ID of that run and its message. A policy
may retry it, which starts another run. If somebody cancels the other run, that is a
failure of class final.

Cancelling the run cancels the other run too, and pausing the run, or only this step,
also pauses the other run. Playbooks may call each other and themselves, up to 16 levels
deep, and a run may have 10,000 child runs, at any depth (REPRISE_RUNS_LIMIT of the
worker).

A file is read where the run is started, from the folder of the file that names it, and
is stored with the run: at most 100 files of 1 MiB together. A name is looked up once by
the worker, when the run starts (--playbooks). The run records what was found, so later
changes of the file have no effect. A name may be a template over workload; names then
lists what it may return, so that whoever may start this playbook cannot reach other
playbooks.`

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
			{Name: playbook.FieldWorkflow, Kind: playbook.KindSteps, Doc: "The steps of an inline playbook. They see each other and the values in workload."},
			{Name: playbook.FieldPath, Kind: playbook.KindLiteral, Doc: "The file, relative to this playbook."},
			{Name: playbook.FieldName, Kind: playbook.KindText, Doc: "The name of a file in the worker's folder, without .yaml."},
			{Name: playbook.FieldNames, Kind: playbook.KindLiteral, Doc: "The names that a template in `name` may return."},
			{Name: playbook.FieldWorkload, Kind: playbook.KindMap, Doc: "Inputs of the other run; they override the workload of its playbook."},
			{
				Name: playbook.FieldPartition, Kind: playbook.KindText,
				Doc: "The key of the partition that the other run handles, if its playbook has partitions; default: the newest one that was complete when the run was due or started.",
			},
			{
				Name: playbook.FieldWait, Kind: playbook.KindBoolean, Default: "true",
				Doc: "With false, the step ends when the other run has started, and that run continues independently. The result is {workflow_id, run_id}.",
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
	return interpreter.ToolResult{}, tool.ConfigErrorf("the tool %s runs in a workflow and has no activity", playbook.PlaybookTool)
}
