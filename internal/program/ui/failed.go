package ui

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
)

// failedView is the failed iterations of runs, by error.
type failedView struct {
	Groups []failedGroup
	Next   string
	Later  bool // this is not the first page
	Notes  []string
}

// failedGroup is the failed iterations with one error.
type failedGroup struct {
	Error string
	Like  string // the message of one of them, "" where Error has it
	Count int
	Runs  []*failedRun
	index map[string]*failedRun
}

// failedRun is a run with iterations that failed with one error.
type failedRun struct {
	Run      runs.Found
	Step     string
	Indexes  string
	Count    int
	Again    []runs.Found // that have run them again
	CanAgain bool
	indexes  []int
}

const (
	// mostIndexes bounds the iterations that are named.
	mostIndexes = 8
	// mostErrorText is how much of an error decides which are alike, in letters.
	mostErrorText = 200
)

func (s *Server) failedPage(w http.ResponseWriter, r *http.Request, v *visit) error {
	v.frame.Title, v.frame.Section = "Failed iterations", "/failed"
	token, err := base64.RawURLEncoding.DecodeString(r.URL.Query().Get("page"))
	if err != nil {
		return &pageError{http.StatusBadRequest, "The address of the page is incomplete."}
	}
	shown := &failedView{Later: len(token) > 0}
	page, err := s.Runs.Page(r.Context(), runs.Filter{WithFailed: true}, callsPerPage-1, token)
	if errors.Is(err, runs.ErrNoAttributes) {
		shown.Notes = append(shown.Notes, "The server cannot find failed iterations: the namespace lacks search attributes. starter setup adds them.")
		err = nil
	}
	if err != nil {
		return err
	}
	again, err := s.Runs.Reprocesses(r.Context(), page.Runs)
	if err != nil && !errors.Is(err, runs.ErrNoAttributes) {
		return err
	}
	shown.group(s.statuses(r.Context(), page.Runs, v), again, s.Reprocess != nil && v.person.Operator)
	if page.Next != nil {
		shown.Next = "/failed?page=" + base64.RawURLEncoding.EncodeToString(page.Next)
	}
	s.write(w, v, http.StatusOK, "failed", shown)
	return nil
}

// statuses reads the results of runs that have ended; nil where one cannot be read.
func (s *Server) statuses(ctx context.Context, list []runs.Found, v *visit) []*runs.Status {
	all := make([]*runs.Status, len(list))
	var group errgroup.Group
	for i, run := range list {
		group.Go(func() error {
			status, err := s.Runs.Status(ctx, run, v.frame.At)
			if err != nil {
				return nil
			}
			for _, step := range status.Visits("") {
				s.Runs.Iterations(ctx, status, step)
			}
			all[i] = status
			return nil
		})
	}
	_ = group.Wait()
	return all
}

// group puts the failed iterations of runs together that have one error.
func (v *failedView) group(all []*runs.Status, again map[string][]runs.Found, canAgain bool) {
	groups := map[string]*failedGroup{}
	for _, status := range all {
		if status == nil {
			continue
		}
		for _, step := range status.Steps {
			for _, iteration := range step.Iterations {
				if iteration.Error == nil {
					continue
				}
				text := terminal.Shorten(iteration.Error.Short(), mostErrorText)
				group := groups[text]
				if group == nil {
					group = &failedGroup{Error: text, index: map[string]*failedRun{}}
					groups[text] = group
					if message := terminal.Shorten(iteration.Error.Message, mostErrorText); message != text {
						group.Like = message
					}
				}
				group.add(status.Found, step.Step, iteration.Index, again[status.WorkflowID], canAgain)
			}
		}
	}
	for _, group := range groups {
		for _, run := range group.Runs {
			run.Indexes = indexText(run.indexes)
		}
		v.Groups = append(v.Groups, *group)
	}
	slices.SortFunc(v.Groups, func(x, y failedGroup) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Error, y.Error))
	})
}

func (g *failedGroup) add(run runs.Found, step string, index int, again []runs.Found, canAgain bool) {
	g.Count++
	key := run.WorkflowID + "\n" + run.RunID + "\n" + step
	of := g.index[key]
	if of == nil {
		of = &failedRun{Run: run, Step: step, Again: again, CanAgain: canAgain && run.Ended()}
		g.index[key] = of
		g.Runs = append(g.Runs, of)
	}
	of.Count++
	of.indexes = append(of.indexes, index)
}

// indexText names iterations.
func indexText(indexes []int) string {
	slices.Sort(indexes)
	text := ""
	for i, index := range indexes[:min(len(indexes), mostIndexes)] {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(index)
	}
	if more := len(indexes) - mostIndexes; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
