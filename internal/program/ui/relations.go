package ui

import (
	"context"
	"net/url"
	"regexp"
	"strings"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/program/backfill"
	"reprise/interpreter"
)

// relation is a link from a run to something related.
type relation struct {
	Word, Name, Path string
	Status           interpreter.Status // of a run, "" where it is not known
}

// ofChild matches the workflow ID of a run that a step of another run, or an iteration of it, started.
var ofChild = regexp.MustCompile(`^(.+)/([^/]+)#\d+(?:/(\d+))?!\d+$`)

// runsOfStep returns the path of the list of runs that a step of a run started.
func runsOfStep(id, step string) string {
	return "/?" + url.Values{"q": {id + "/" + step + "#"}}.Encode()
}

// relatedRuns returns the links from a run to other runs, its schedule and its playbook.
func (s *Server) relatedRuns(ctx context.Context, status *runs.Status) []relation {
	run := status.Found
	var all []relation
	toRun := func(word, id string, status interpreter.Status) {
		all = append(all, relation{Word: word, Name: id, Path: runPath(id), Status: status})
	}
	if parent := ofChild.FindStringSubmatch(run.WorkflowID); parent != nil && run.IsChild() {
		step := "Started by step " + parent[2]
		if parent[3] != "" {
			step += ", iteration " + parent[3]
		}
		toRun(step+", of", parent[1], "")
		all = append(all, relation{Word: "Other runs of the step", Name: parent[2], Path: runsOfStep(parent[1], parent[2])})
	}
	for _, parent := range status.HeldByParents {
		toRun("Held by", parent.Run, "")
	}
	if run.Origin != "" {
		toRun("Runs again the failed iterations of", run.Origin, "")
	}
	if status.Queue != nil {
		for _, holder := range status.Queue.Holders {
			toRun("Waits for", holder, "")
		}
	}
	if origin := run.WorkflowID; run.Ended() && (run.DeadLetters > 0 || run.Origin != "") {
		if run.Origin != "" {
			origin = run.Origin
		}
		again, _ := s.Runs.Reprocesses(ctx, []runs.Found{{WorkflowID: origin}}) // without it these are not shown
		for _, other := range again[origin] {
			if other.WorkflowID != run.WorkflowID {
				toRun("Run again by", other.WorkflowID, other.Status)
			}
		}
	}
	if run.Schedule != "" {
		word := "Started by the schedule"
		if run.Started.By != "" {
			word = "Triggered by " + terminal.Shorten(run.Started.By, 60) + " in the schedule"
		}
		all = append(all, relation{Word: word, Name: run.Schedule, Path: "/schedules?" + url.Values{"id": {run.Schedule}}.Encode()})
	}
	if run.Playbook != "" {
		all = append(all, relation{Word: "Other runs of", Name: run.Playbook, Path: "/?" + url.Values{"playbook": {run.Playbook}}.Encode()})
		if of, isBackfill := strings.CutSuffix(run.Playbook, backfill.Suffix); s.Library != nil && s.Library.Has(of) {
			word := "Playbook"
			if isBackfill {
				word = "Backfill of"
			}
			all = append(all, relation{Word: word, Name: of, Path: bookPath(of)})
		}
	}
	return all
}
