package ui

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// TestLongNames: the longest name of a playbook is whole, and lanes of steps whose names begin alike are
// distinguishable.
func TestLongNames(t *testing.T) {
	t.Parallel()
	render := func(page string, content any) string {
		var b strings.Builder
		require.NoError(t, templates()[page].ExecuteTemplate(&b, "content", frame{Content: content}))
		return b.String()
	}
	longest := strings.Repeat("n", 61) + "end"
	require.Contains(t, render("runs", &runsView{overview: &overview{}, Rows: []runRow{{Run: runs.Found{Playbook: longest}}}}), longest)

	first, second := strings.Repeat("s", 62)+"_1", strings.Repeat("s", 62)+"_2"
	shown := render("run", &runView{Status: &runs.Status{}, Timeline: &timeline{Lanes: []*lane{{Name: first}, {Name: second}}}})
	require.Contains(t, shown, `s_1</bdi>`)
	require.Contains(t, shown, `s_2</bdi>`)
}

// TestBuildOfARun: the page of a run names the build that it is on.
func TestBuildOfARun(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	build := &runs.Build{Deployment: "clinic", ID: "v0.2.0-711dd460dead", Pinned: true}
	require.NoError(t, templates()["run"].ExecuteTemplate(&b, "content", frame{Content: &runView{Run: runs.Found{Build: build}, Status: &runs.Status{}}}))
	require.Contains(t, b.String(), "Build <bdi>v0.2.0-711dd460dead</bdi> of <bdi>clinic</bdi>, pinned · Started")
}

// TestSentencesAboutRuns: what happened to a run is said in the past, what holds one in the present. A button of an approval begins
// with a capital where its word is not the playbook's own.
func TestSentencesAboutRuns(t *testing.T) {
	t.Parallel()
	for status, want := range map[interpreter.Status]string{
		interpreter.Failed: "failed", interpreter.Partial: "succeeded in part", interpreter.Cancelled: "was cancelled", interpreter.Running: "is running",
		interpreter.Awaiting: "awaits an answer",
	} {
		require.Equal(t, want, statusSentence(status))
	}
	require.Equal(t, "Approve", buttonText("approve"))
	require.Equal(t, "book it later", buttonText("book it later"))
	require.Equal(t, "Answered “book it later” by ada.", answeredText("book it later", "ada"))
	row := runRow{Needs: true, Status: interpreter.Failed, IsUnread: true}
	var b strings.Builder
	require.NoError(t, templates()["runs"].ExecuteTemplate(&b, "content", frame{Content: &runsView{overview: &overview{Needs: []runRow{row}}}}))
	require.Contains(t, b.String(), `data-label="Why, and what next" class="now"><span class="faint below">The cause has not been read yet: open the run.</span>`)
}
