package scaffold_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/scaffold"
	"reprise/interpreter/expression"
)

// answered is the description of a line of curl whose request was answered.
func answered(t *testing.T, line, body string, linked bool) *scaffold.Description {
	t.Helper()
	of, err := scaffold.FromCurl(line)
	require.NoError(t, err)
	probe, err := scaffold.ProbeOf(line, os.LookupEnv)
	require.NoError(t, err)
	value, err := expression.Decode([]byte(body))
	require.NoError(t, err)
	of.ApplyProbe(probe, value, linked)
	return of
}

// TestAnswersOfProbes: what an answer says of pages, of its rows and of their key is in the playbook; what it says of people is in no
// file, and what it leaves open is called a guess.
func TestAnswersOfProbes(t *testing.T) {
	t.Parallel()
	const line = `curl -H 'Authorization: Bearer SECRETa1b2c3' 'https://api.test/orders?limit=2'`
	for name, row := range map[string]struct {
		body         string
		linked       bool
		style        string
		holds, lacks []string
	}{
		"cursor": {
			`{"orders": [{"uuid": "b1", "email": "hunter2@x.test", "at": "2020-05-06T07:08:09Z"}, {"uuid": "b2"}], "has_more": true, "next_cursor": "abc"}`, false,
			"cursor",
			[]string{"collect: {path: orders}", "key: uuid", "cursor: \"{{ response.next_cursor }}\"", "A guess: the parameter cursor"},
			[]string{"hunter2", "2020-05-06"},
		},
		"a link in the header": {`[{"id": 7, "name": "hunter2"}, {"id": 8}]`, true, "link", []string{"this.meta.links.next", "key: id"}, []string{"A guess"}},
		"an address": {
			`{"results": [{"id": 7}, {"id": 8}], "next": "https://api.test/orders?page=2&token=SECRETa1b2c3", "count": 9}`, false,
			"link",
			[]string{"url: \"{{ response.next }}\"", "collect: {path: results}"},
			[]string{"A guess"},
		},
		"an end that leads on":           {`{"tickets": [{"id": 1}], "next_page": "https://api.test/o?start=1", "end_of_stream": false}`, false, "link", []string{"not response.end_of_stream and response.next_page"}, nil},
		"more, and not how":              {`{"list": [{"id": 7}], "total": 9}`, false, "offset", []string{"len(pages) < response.total", "A guess: the response says there is more"}, nil},
		"as many rows as were asked for": {`{"list": [{"id": 7}, {"id": 8}]}`, false, "offset", []string{"collect: {path: list}", "A guess: the response has as many rows as requested, 2, but does not show how"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := checked(t, answered(t, line, row.body, row.linked), scaffold.Options{Name: "orders"})
			require.Equal(t, row.style, styleOf(made), "%s", made.Playbook)
			for _, text := range row.holds {
				require.Contains(t, string(made.Playbook), text)
			}
			for _, text := range row.lacks {
				require.NotContains(t, string(made.Playbook)+string(made.Test), text)
			}
		})
	}
	made, err := scaffold.MakeDraft(answered(t, `curl 'https://api.test/orders?limit=100'`, `{"data": [{"id": 7}]}`, false), scaffold.Options{})
	require.NoError(t, err)
	require.Contains(t, made.Notes, "a guess: the response has 1 row and shows no further pages, so the playbook requests one page")
	require.Contains(t, string(made.Playbook), "result.data")
}

// TestProbesAreSafe: only a GET without a body goes out, with what logs in and nothing that is not known.
func TestProbesAreSafe(t *testing.T) {
	t.Parallel()
	for line, message := range map[string]string{
		`curl -X DELETE https://api.test/x`:                                   "only a GET",
		`curl https://api.test/x -d a=SECRET`:                                 "only a GET",
		`curl -X GET https://api.test/x -d '{"a": "SECRET"}'`:                 "only a GET",
		`curl -I https://api.test/x`:                                          "only a GET",
		`curl https://api.test/users/{id}`:                                    "has a placeholder",
		`curl https://api.test/users/:id/orders`:                              "has a placeholder",
		`curl -H 'Authorization: Bearer '"$NO_SUCH_TOKEN" https://api.test/x`: "$NO_SUCH_TOKEN, which is not set",
	} {
		_, err := scaffold.ProbeOf(line, func(string) (string, bool) { return "", false })
		require.ErrorContains(t, err, message, line)
		require.NotContains(t, err.Error(), "SECRET")
	}
	probe, err := scaffold.ProbeOf(`curl -u "me:$PASSWORD" 'https://api.test/t/ghp_SECRETa1b2c3d4e5f6/rows?api_key=SECRETa1b2&page=1'`,
		func(string) (string, bool) { return "SECRETpw1", true })
	require.NoError(t, err)
	require.NotContains(t, probe.String(), "SECRET")
	require.Equal(t, "Basic bWU6U0VDUkVUcHcx", probe.Headers["authorization"])
	require.Equal(t, 1, probe.Params["page"])
	require.Equal(t, "https://api.test/t/ghp_SECRETa1b2c3d4e5f6/rows", probe.URL)
	require.NotContains(t, probe.Secrets().MaskText("it was SECRETpw1"), "SECRETpw1")
}
