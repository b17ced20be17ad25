package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
	"reprise/internal/test/docs"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/workflows/protocol"
)

// recipePrefix begins the names of the playbooks that are recipes, in docs/how-to.
const recipePrefix = "recipe_"

// recipe is what a recipe does beside its result, which is on its page.
type recipe struct {
	status   string // "" is completed
	requests []string
	before   func(w *world)
	answers  map[string]interpreter.Answer // of what awaits one, by its step
	after    func(t *testing.T, w *world, result protocol.Result)
}

var recipes = map[string]recipe{
	"recipe_page": {requests: []string{
		"/api/v1/assessments?page=1&pageSize=10", "/api/v1/assessments?page=2&pageSize=10",
		"/api/v1/assessments?page=3&pageSize=10", "/api/v1/assessments?page=4&pageSize=10",
	}},
	"recipe_offset": {requests: []string{
		"/api/v1/users?limit=10&offset=0", "/api/v1/users?limit=10&offset=10",
		"/api/v1/users?limit=10&offset=20", "/api/v1/users?limit=10&offset=30", "/api/v1/users?limit=10&offset=35",
	}},
	"recipe_cursor": {requests: []string{
		"/api/v1/events?limit=10", "/api/v1/events?cursor=YWZ0ZXI6MTA%3D&limit=10",
		"/api/v1/events?cursor=YWZ0ZXI6MjA%3D&limit=10", "/api/v1/events?cursor=YWZ0ZXI6MzA%3D&limit=10",
	}},
	"recipe_link": {requests: []string{
		"/api/v1/orders?pageSize=10", "/api/v1/orders?page=2&pageSize=10",
		"/api/v1/orders?page=3&pageSize=10", "/api/v1/orders?page=4&pageSize=10",
	}},
	"recipe_file":   {requests: []string{"/api/v1/exports/users.csv.gz"}},
	"recipe_keyset": {requests: []string{}},
	"recipe_polling": {requests: []string{
		"/api/v1/jobs", "/api/v1/jobs/job-1?ready_after=3",
		"/api/v1/jobs/job-1?ready_after=3", "/api/v1/jobs/job-1?ready_after=3",
	}},
	"recipe_oauth2":        {before: beforeOAuth2, after: afterOAuth2},
	"recipe_several_steps": {},
	"recipe_secret":        {before: beforeSecret, after: afterSecret},
	"recipe_rate_limit":    {after: afterRateLimit},
	"recipe_give_up":       {requests: []string{"/status/503", "/status/503", "/status/503"}, after: afterGiveUp},
	"recipe_tell":          {after: afterTell},
	"recipe_import": {before: beforeImport, answers: map[string]interpreter.Answer{
		"load": {Verb: interpreter.AnswerComplete, Result: expression.Of(map[string]any{"rows": 1200})},
	}},
	"recipe_approval": {answers: map[string]interpreter.Answer{
		"release": {Verb: interpreter.AnswerComplete, Option: "approve", Form: map[string]any{"ticket": "T-17"}, By: "ada"},
	}},
	"recipe_poison": {status: "partial_success", after: afterPoison},
}

// TestRecipes runs every recipe as it is on its page.
func TestRecipes(t *testing.T) {
	t.Parallel()
	pages, err := docs.WrittenExamples(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	seen := map[string]bool{}
	for name, blocks := range pages {
		for _, example := range blocks {
			if !example.Is("yaml") || !strings.Contains(example.Text, "{name: "+recipePrefix) {
				continue
			}
			book, found := playbook.Decode(source.NewFile(name, []byte(example.Text)))
			require.Empty(t, found, "%s:%d", name, example.Line)
			want, known := recipes[book.Name]
			require.True(t, known, "%s:%d: nothing is known of %s", name, example.Line, book.Name)
			require.False(t, seen[book.Name], book.Name)
			seen[book.Name] = true
			t.Run(book.Name, func(t *testing.T) {
				t.Parallel()
				want.check(t, example)
			})
		}
	}
	require.Len(t, seen, len(recipes), "recipes on the pages")
}

func (want recipe) check(t *testing.T, example *docs.Example) {
	require.True(t, example.Next.Is("json"), "%s:%d: no result follows", example.File, example.Line)
	data, err := expression.Decode([]byte(example.Next.Text))
	require.NoError(t, err)
	w := newWorld(t)
	if want.before != nil {
		want.before(w)
	}
	w.work()
	status := "completed"
	if want.status != "" {
		status = want.status
	}
	run := w.start(example.Text, nil)
	for step, answer := range want.answers {
		answer.Step = step
		require.Eventually(t, func() bool {
			_, err := w.answerTo(run.GetID(), answer)
			return err == nil
		}, testenv.Within(time.Minute), 50*time.Millisecond, "step %s does not await answers", step)
	}
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, status, result.Status, "%+v", result.Error)
	require.Equal(t, data, result.Result.Data)
	if want.requests != nil {
		require.Equal(t, want.requests, requests(w.api.Requests("")))
	}
	if want.after != nil {
		want.after(t, w, result)
	}
}

// afterRateLimit: the limit was kept by spreading, not by being refused.
func afterRateLimit(t *testing.T, w *world, _ protocol.Result) {
	logged := w.api.Requests("")
	require.LessOrEqual(t, len(logged), 33, "at most one in ten is refused")
	first, last := logged[0], logged[len(logged)-1]
	require.Greater(t, last.AtMS-first.AtMS, int64(1000), "30 requests at 19 per second")
}

func beforeOAuth2(w *world) {
	w.secrets = append(w.secrets, demoapi.DemoSecret, "demo-token-")
	w.connected["demo"] = fmt.Sprintf(`{"oauth2": {"token_url": "%s/auth/token?uses=2", "client_id": %q, "client_secret": %q}}`,
		w.api.URL(), demoapi.DemoClient, demoapi.DemoSecret)
}

// afterOAuth2: a token that is refused is replaced within the attempt.
func afterOAuth2(t *testing.T, w *world, result protocol.Result) {
	require.Equal(t, 3, w.api.CountRequests("", "/auth/token"))
	require.Equal(t, 7, w.api.CountRequests("", "/auth/oauth2"), "5 that were let in and 2 that were not")
	require.Equal(t, 5, step(t, result, "fetch").Loop.Stats.Success)
}

// beforeImport: the worker makes the tokens of answers.
func beforeImport(w *world) {
	w.makeKeys()
	w.resources.CallbackURL = "https://serve.example.com/"
}

func beforeSecret(w *world) {
	w.secrets = append(w.secrets, "demo-token-", demoapi.DemoSecret)
	w.connected["demo_login"] = strings.Replace(w.api.URL(), "://", "://"+demoapi.DemoClient+":"+demoapi.DemoSecret+"@", 1)
	w.makeKeys()
}

func afterSecret(t *testing.T, w *world, _ protocol.Result) {
	require.Equal(t, 1, w.api.CountRequests("", "/auth/token"))
	require.Equal(t, 5, w.api.CountRequests("", "/auth/oauth2"))
}

// afterGiveUp: the failure stays one.
func afterGiveUp(t *testing.T, _ *world, result protocol.Result) {
	fetched := step(t, result, "fetch")
	require.EqualValues(t, "failed", fetched.Status)
	require.True(t, fetched.Handled)
}

// afterTell: the channel was told of the end, and of nothing else.
func afterTell(t *testing.T, w *world, _ protocol.Result) {
	require.Equal(t, []any{map[string]any{"text": "recipe_tell: 25 patients"}}, w.bodies())
}

// afterPoison: the bad element was tried once and those behind it were run.
func afterPoison(t *testing.T, w *world, result protocol.Result) {
	require.Equal(t, 1, w.api.CountRequests("", "/api/v1/patients/p13/"))
	require.Positive(t, w.api.CountRequests("", "/api/v1/patients/p14/"))
	loop := step(t, result, "fetch").Loop
	require.Len(t, loop.Errors, 1)
	require.Equal(t, 2, loop.Errors[0].Index)
	require.Equal(t, 1, loop.Errors[0].Attempts)
}
