package demoapi

import (
	"fmt"
	"net/http"
)

// createJob creates a job: job-1, job-2 and so on within the scenario.
func (s *Server) createJob(w http.ResponseWriter, r *http.Request) {
	id := fmt.Sprintf("job-%d", s.scenarioOf(r).countUp("jobs"))
	w.Header().Set("Location", "/api/v1/jobs/"+id)
	respondJSON(w, http.StatusAccepted, object{"id": id, "status": "pending"})
}

// pollJob reports a job as pending until request number ready_after (1 by default). Any ID is accepted, whether the
// job was created or not.
func (s *Server) pollJob(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	readyAfter := p.intValue("ready_after", 1, 1, 1_000_000)
	outcome := r.URL.Query().Get("outcome")
	if p.rejectBad(w) {
		return
	}
	id := r.PathValue("id")
	job := object{"id": id, "status": "pending", "polls": s.scenarioOf(r).countUp("job " + id)}
	switch {
	case job["polls"].(int) < readyAfter:
	case outcome == "failed":
		job["status"], job["error"] = "failed", "the job failed, as requested"
	default:
		job["status"], job["result"] = "done", object{"rows": s.options.Items}
	}
	respondJSON(w, http.StatusOK, job)
}
