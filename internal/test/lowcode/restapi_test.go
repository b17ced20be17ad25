package lowcode_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"reprise/activities"
	"reprise/internal/program/connector"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// restCase is a configuration of dlt with an API made up for it, and with what dlt asks of that API and loads: written
// from the meaning of the configuration.
type restCase struct {
	workload map[string]any
	// answers are what the API says to each request: a body, or an answer with status and headers.
	answers map[string]any
	// runs are the requests of each run, in their order, with the bodies of those that have one.
	runs [][]string
	// rows are those of each table, as JSON, sorted; nil columns are left out.
	rows map[string][]string
	logs string // the login that each request has
	fail string // the error of the first run
}

// restAnswer is an answer that is more than a body.
type restAnswer struct {
	status  int
	headers map[string]string
	body    any
}

var restCases = map[string]restCase{
	"json_link": {
		answers: map[string]any{
			"GET /v1/issues?archived=False&per_page=2&state=open": `{"data": {"items": [{"id": 1, "t": "a"}, {"id": 2}]}, "paging": {"next": "/v1/issues?cursor=x"}}`,
			"GET /v1/issues?cursor=x":                             `{"data": {"items": [{"id": 1, "t": "b"}, {"id": 3}]}, "paging": {"next": ""}}`,
			"GET /v1/labels?archived=False&per_page=2":            `{"data": {"items": []}, "paging": {"next": null}}`,
		},
		runs: [][]string{{"GET /v1/issues?archived=False&per_page=2&state=open", "GET /v1/issues?cursor=x", "GET /v1/labels?archived=False&per_page=2"}},
		rows: map[string][]string{"issues": {`{"id":1,"t":"b"}`, `{"id":2}`, `{"id":3}`}},
		logs: "Bearer ACCESS_TOKEN",
	},
	"page_number": {
		answers: map[string]any{
			"GET /products?p=1":              `{"products": [{"sku": "a"}], "meta": {"pages": "2"}}`,
			"GET /products?p=2":              `{"products": [{"sku": "b"}], "meta": {"pages": 2}}`,
			"GET /prices?ids=1&ids=2&page=0": `{"prices": []}`,
			"GET /prices?ids=1&ids=2&page=1": `{"prices": [{"id": 7}]}`,
		},
		runs: [][]string{{"GET /products?p=1", "GET /products?p=2", "GET /prices?ids=1&ids=2&page=0", "GET /prices?ids=1&ids=2&page=1"}},
		rows: map[string][]string{"products": {`{"sku":"a"}`, `{"sku":"b"}`}, "prices": {`{"id":7}`}},
		logs: "key API_KEY",
	},
	"page_until_empty": {
		answers: map[string]any{
			"GET /albums?page=1": `[{"id": 1}]`, "GET /albums?page=2": `[{"id": 1, "n": 2}]`, "GET /albums?page=3": `[]`,
			"GET /songs?page=0": `{"songs": [{"id": 4}], "more": "True"}`, "GET /songs?page=1": `{"songs": [{"id": 4}, {"id": 5}], "more": false}`,
		},
		runs: [][]string{{"GET /albums?page=1", "GET /albums?page=2", "GET /albums?page=3", "GET /songs?page=0", "GET /songs?page=1"}},
		rows: map[string][]string{"albums": {`{"id":1,"n":2}`, `{"id":1}`}, "songs": {`{"id":4}`, `{"id":4}`, `{"id":5}`}},
	},
	"offset": {
		answers: map[string]any{
			"GET /v2/users?limit=2&offset=0": `{"users": [{"tenant": 1, "id": 1, "tags": ["x", "y"]}, {"tenant": 1, "id": 2}], "total": 3}`,
			"GET /v2/users?limit=2&offset=2": `{"users": [{"tenant": 2, "id": 1}], "total": 3}`,
			"GET /v2/groups?skip=1&take=2":   `{"groups": [{"id": 1}, {"id": 2}]}`,
			"GET /v2/groups?skip=3&take=2":   `{"groups": [{"id": 3}, {"id": 4}]}`,
		},
		runs: [][]string{{"GET /v2/users?limit=2&offset=0", "GET /v2/users?limit=2&offset=2", "GET /v2/groups?skip=1&take=2", "GET /v2/groups?skip=3&take=2"}},
		rows: map[string][]string{
			"users": {`{"id":1,"tenant":1}`, `{"id":1,"tenant":2}`, `{"id":2,"tenant":1}`}, "groups": {`{"id":1}`, `{"id":2}`, `{"id":3}`, `{"id":4}`},
			"users_tags": {`{"users_id":1,"users_tags_line":0,"users_tenant":1,"value":"x"}`, `{"users_id":1,"users_tags_line":1,"users_tenant":1,"value":"y"}`},
		},
	},
	"offset without its total": {
		answers: map[string]any{"GET /v2/users?limit=2&offset=0": `{"users": [{"tenant": 1, "id": 1}]}`},
		runs:    [][]string{{"GET /v2/users?limit=2&offset=0"}},
		fail:    "the answer has no total, which the pagination needs",
	},
	"cursor": {
		answers: map[string]any{
			`POST /notes/search?api_key=API_KEY {"filter":{"kind":"text"},"page":{"size":2}}`:              `{"results": [{"id": 1}, {"id": 2}], "page": {"next": "c2"}}`,
			`POST /notes/search?api_key=API_KEY {"filter":{"kind":"text"},"page":{"after":"c2","size":2}}`: `{"results": [{"id": 3}], "page": {}}`,
			"GET /tags?api_key=API_KEY":          restAnswer{status: 503},
			"GET /tags?api_key=API_KEY again":    `{"tags": [{"id": 1}], "cursors": {"next": "n"}}`,
			"GET /tags?api_key=API_KEY&cursor=n": `{"tags": [{"id": 2}]}`,
		},
		runs: [][]string{{
			`POST /notes/search?api_key=API_KEY {"filter":{"kind":"text"},"page":{"size":2}}`, `POST /notes/search?api_key=API_KEY {"filter":{"kind":"text"},"page":{"after":"c2","size":2}}`,
			"GET /tags?api_key=API_KEY", "GET /tags?api_key=API_KEY again", "GET /tags?api_key=API_KEY&cursor=n",
		}},
		rows: map[string][]string{"notes": {`{"id":1}`, `{"id":2}`, `{"id":3}`}, "tags": {`{"id":1}`, `{"id":2}`}},
	},
	"header_link": {
		answers: map[string]any{
			"GET /orgs/acme/repos?per_page=2": restAnswer{headers: map[string]string{"Link": `</repos?page=2>; rel="next"`}, body: `[{"id": 1}]`},
			"GET /repos?page=2":               `[{"id": 2}]`,
			"GET /events":                     restAnswer{headers: map[string]string{"X-Next": "e1"}, body: `[{"id": 8}]`},
			"GET /events?after=e1":            `[{"id": 9}]`,
		},
		runs: [][]string{{"GET /orgs/acme/repos?per_page=2", "GET /repos?page=2", "GET /events", "GET /events?after=e1"}},
		rows: map[string][]string{"repos": {`{"id":1}`, `{"id":2}`}, "events": {`{"id":8}`, `{"id":9}`}},
		logs: "token REPOS_TOKEN",
	},
	"parent": {
		answers: map[string]any{
			"GET /projects":                                        `{"items": [{"id": 1, "title": "A", "owner": {"login": "ada"}}, {"id": 2, "title": "B", "owner": {"login": "bob"}}]}`,
			"GET /projects/1/tasks?owner=ada":                      `{"items": [{"id": 11}, {"id": 12}]}`,
			"GET /projects/2/tasks?owner=bob":                      `{"items": []}`,
			`POST /comments {"limit":5,"project":"p-A","task":11}`: `{"items": [{"text": "x"}]}`,
			`POST /comments {"limit":5,"project":"p-A","task":12}`: `{"items": [{"text": "y"}]}`,
			"GET /notes?project=1":                                 `{"items": [{"n": 1}]}`, "GET /notes?project=2": `{"items": [{"n": 2}]}`,
		},
		runs: [][]string{{
			"GET /projects", "GET /projects/1/tasks?owner=ada", "GET /projects/2/tasks?owner=bob", `POST /comments {"limit":5,"project":"p-A","task":11}`,
			`POST /comments {"limit":5,"project":"p-A","task":12}`, "GET /notes?project=1", "GET /notes?project=2",
		}},
		rows: map[string][]string{
			"tasks": {`{"_projects_title":"A","id":11}`, `{"_projects_title":"A","id":12}`}, "comments": {`{"text":"x"}`, `{"text":"y"}`}, "notes": {`{"n":1}`, `{"n":2}`},
		},
	},
	"resolve": {
		workload: map[string]any{"team": "red"},
		answers: map[string]any{
			"GET /{not_formatted}/teams/red/people?active=True": `{"people": [{"id": 1}, {"id": 2}, {"id": 3}]}`,
			"GET /{not_formatted}/people/1":                     `{"id": 1, "name": "Ada"}`,
			"GET /{not_formatted}/people/2":                     restAnswer{status: 404, body: `{"message": "gone"}`},
			"GET /{not_formatted}/people/3":                     `{"state": "withdrawn"}`,
		},
		runs: [][]string{{"GET /{not_formatted}/teams/red/people?active=True", "GET /{not_formatted}/people/1", "GET /{not_formatted}/people/2", "GET /{not_formatted}/people/3"}},
		rows: map[string][]string{"details": {`{"id":1,"name":"Ada"}`}},
	},
	"incremental": {
		answers: map[string]any{
			"GET /orders?since=2024-01-01T00:00:00Z": `{"orders": [{"id": 1, "updated_at": "2024-01-02T00:00:00Z"}, {"id": 2, "updated_at": "2023-12-31T00:00:00Z"}], "next": "/orders?p=2"}`,
			"GET /orders?p=2":                        `{"orders": [{"id": 3, "updated_at": "2024-01-03T00:00:00Z"}]}`,
			"GET /events?after=0&sort=id":            `{"events": [{"id": 1, "meta": {"seq": 5}}, {"id": 2, "meta": {"seq": 7}}]}`,
			"GET /orders?since=2024-01-03T00:00:00Z": `{"orders": [{"id": 3, "updated_at": "2024-01-03T00:00:00+00:00"}, {"id": 1, "updated_at": "2024-01-04T00:00:00Z"}, {"id": 9, "updated_at": "2024-01-01T00:00:00Z"}]}`,
			"GET /events?after=7&sort=id":            `{"events": [{"id": 2, "meta": {"seq": 7}}, {"id": 3, "meta": {"seq": 7}}, {"id": 1, "meta": {"seq": 5}}]}`,
		},
		runs: [][]string{
			{"GET /orders?since=2024-01-01T00:00:00Z", "GET /orders?p=2", "GET /events?after=0&sort=id"},
			{"GET /orders?since=2024-01-03T00:00:00Z", "GET /events?after=7&sort=id"},
		},
		rows: map[string][]string{
			"orders": {`{"id":1,"updated_at":"2024-01-04T00:00:00Z"}`, `{"id":3,"updated_at":"2024-01-03T00:00:00+00:00"}`},
			"events": {`{"id":1,"meta":{"seq":5}}`, `{"id":2,"meta":{"seq":7}}`, `{"id":3,"meta":{"seq":7}}`},
		},
		logs: "Bearer TOKEN",
	},
	"incremental_range": {
		answers: map[string]any{
			"GET /visits?from=2024-01-01&to=2024-02-01": `{"visits": [{"id": 1, "day": "2024-01-01"}, {"id": 2, "day": "2024-02-01"}, {"id": 3, "day": "2023-12-31"}]}`,
			"GET /changes":       `{"changes": [{"id": 9, "at": "2024-03-01T00:00:00Z"}, {"id": 8}], "next": "/changes?n=2"}`,
			"GET /changes?n=2":   `{"changes": [{"id": 7, "at": "2024-02-01T00:00:00Z"}, {"id": 6, "at": "2023-01-01T00:00:00Z"}], "next": "/changes?n=3"}`,
			"GET /changes again": `{"changes": [{"id": 10, "at": "2024-02-29T23:30:00Z"}, {"id": 7, "at": "2024-02-01T00:00:00Z"}], "next": "/changes?n=2"}`,
		},
		runs: [][]string{
			{"GET /visits?from=2024-01-01&to=2024-02-01", "GET /changes", "GET /changes?n=2"},
			{"GET /visits?from=2024-01-01&to=2024-02-01", "GET /changes again"},
		},
		rows: map[string][]string{
			"visits":  {`{"day":"2024-01-01","id":1}`},
			"changes": {`{"at":"2024-02-01T00:00:00Z","id":7}`, `{"at":"2024-02-29T23:30:00Z","id":10}`, `{"at":"2024-03-01T00:00:00Z","id":9}`},
		},
	},
	"github": {
		answers: map[string]any{
			"GET /orgs/acme/repos?per_page=2": `[{"id": 1, "full_name": "acme/web"}, {"id": 2, "full_name": "acme/gone"}]`,
			"GET /repos/acme/web/issues?per_page=100&since=2024-01-25T11:21:28Z&sort=updated&state=open":  `[{"id": 7, "updated_at": "2024-02-01T00:00:00Z", "comments_url": "https://api.github.test/repos/acme/web/issues/7/comments"}]`,
			"GET /repos/acme/gone/issues?per_page=100&since=2024-01-25T11:21:28Z&sort=updated&state=open": restAnswer{status: 404, body: `{}`},
			"GET /repos/acme/web/issues/7/comments?per_page=100":                                          restAnswer{headers: map[string]string{"Link": `</c?page=2>; rel="next"`}, body: `[{"id": 1, "issue": 7}]`},
			"GET /c?page=2": `[{"id": 2, "issue": 7}]`,
		},
		runs: [][]string{{
			"GET /orgs/acme/repos?per_page=2", "GET /repos/acme/web/issues?per_page=100&since=2024-01-25T11:21:28Z&sort=updated&state=open",
			"GET /repos/acme/gone/issues?per_page=100&since=2024-01-25T11:21:28Z&sort=updated&state=open", "GET /repos/acme/web/issues/7/comments?per_page=100", "GET /c?page=2",
		}},
		rows: map[string][]string{"issue_comments": {`{"id":1,"issue":7}`, `{"id":2,"issue":7}`}},
		logs: "Bearer ACCESS_TOKEN",
	},
	"stripe": {
		answers: map[string]any{
			"GET /v1/charges?created[gte]=1704067200&limit=100":                  `{"data": [{"id": "a", "created": 1704070800}, {"id": "b", "created": 1704067300}], "has_more": true}`,
			"GET /v1/charges?created[gte]=1704067200&limit=100&starting_after=b": `{"data": [{"id": "c", "created": 1704067200}], "has_more": false}`,
			"GET /v1/balance": `{"available": 5}`,
			"GET /v1/charges?created[gte]=1704067201&limit=100":       `{"data": [], "has_more": true}`,
			"GET /v1/charges?created[gte]=1704067200&limit=100 again": `{"data": []}`,
		},
		runs: [][]string{
			{"GET /v1/charges?created[gte]=1704067200&limit=100", "GET /v1/charges?created[gte]=1704067200&limit=100&starting_after=b", "GET /v1/balance"},
			{"GET /v1/charges?created[gte]=1704067200&limit=100 again", "GET /v1/balance"},
		},
		rows: map[string][]string{"charges": {`{"created":1704067200,"id":"c"}`, `{"created":1704067300,"id":"b"}`, `{"created":1704070800,"id":"a"}`}, "balance": {`{"available":5}`}},
		logs: "Basic U1RSSVBFX0tFWTo=",
	},
	"notion": {
		answers: map[string]any{
			`POST /v1/search {"filter":{"property":"object","value":"page"},"page_size":2}`:                    `{"results": [{"id": "p", "number": 4}], "next_cursor": "n"}`,
			`POST /v1/search {"filter":{"property":"object","value":"page"},"page_size":2,"start_cursor":"n"}`: `{"results": [], "next_cursor": null}`,
			`POST /v1/blocks/p/children {"label":"page 4","page":4}`:                                           `{"results": [{"id": "x"}]}`,
		},
		runs: [][]string{{
			`POST /v1/search {"filter":{"property":"object","value":"page"},"page_size":2}`, `POST /v1/search {"filter":{"property":"object","value":"page"},"page_size":2,"start_cursor":"n"}`,
			`POST /v1/blocks/p/children {"label":"page 4","page":4}`,
		}},
		rows: map[string][]string{"blocks": {`{"id":"x"}`}, "pages": {`{"id":"p","number":4}`}},
	},
	"jira": {
		answers: map[string]any{
			"GET /rest/api/3/search?fields=*all&jql=updated >= '2024-01-01' order by updated&maxResults=2&startAt=0": `{"issues": [{"id": 1, "fields": {"updated": "2024-02-03T10:00:00Z"}}], "total": 3}`,
			"GET /rest/api/3/search?fields=*all&jql=updated >= '2024-01-01' order by updated&maxResults=2&startAt=2": `{"issues": [{"id": 3, "fields": {"updated": "2023-12-31T10:00:00Z"}}], "total": 3}`,
			"GET /rest/api/3/search?fields=*all&jql=updated >= '2024-02-03' order by updated&maxResults=2&startAt=0": `{"issues": [], "total": 0}`,
			"GET /rest/api/3/users/search?maxResults=2&startAt=0":                                                    `[{"id": 1}]`,
			"GET /rest/api/3/users/search?maxResults=2&startAt=2":                                                    `[]`,
		},
		runs: [][]string{
			{
				"GET /rest/api/3/search?fields=*all&jql=updated >= '2024-01-01' order by updated&maxResults=2&startAt=0", "GET /rest/api/3/search?fields=*all&jql=updated >= '2024-01-01' order by updated&maxResults=2&startAt=2",
				"GET /rest/api/3/users/search?maxResults=2&startAt=0", "GET /rest/api/3/users/search?maxResults=2&startAt=2",
			},
			{"GET /rest/api/3/search?fields=*all&jql=updated >= '2024-02-03' order by updated&maxResults=2&startAt=0", "GET /rest/api/3/users/search?maxResults=2&startAt=0", "GET /rest/api/3/users/search?maxResults=2&startAt=2"},
		},
		rows: map[string][]string{"issues": {`{"fields":{"updated":"2024-02-03T10:00:00Z"},"id":1}`}, "users": {`{"id":1}`}},
		logs: "Basic RU1BSUw6QVBJX1RPS0VO",
	},
	"zendesk": {
		answers: map[string]any{
			"GET /api/v2/tickets.json?page[size]=2":      `{"tickets": [{"id": 1, "spam": false}, {"id": 2}], "links": {"next": "/api/v2/tickets.json?after=2"}}`,
			"GET /api/v2/tickets.json?after=2":           `{"tickets": [{"id": 3}], "links": {"next": null}}`,
			"GET /api/v2/tickets/1/audits?include=users": `{"audits": [{"id": 1, "ticket_id": 1}, {"id": 2, "ticket_id": 1}]}`,
			"GET /api/v2/tickets/2/audits?include=users": `{"audits": [{"id": 9, "ticket_id": 2, "why": "it is archived"}]}`,
			"GET /api/v2/tickets/3/audits?include=users": restAnswer{status: 403, body: `{}`},
		},
		runs: [][]string{{
			"GET /api/v2/tickets.json?page[size]=2", "GET /api/v2/tickets.json?after=2", "GET /api/v2/tickets/1/audits?include=users", "GET /api/v2/tickets/2/audits?include=users",
			"GET /api/v2/tickets/3/audits?include=users",
		}},
		rows: map[string][]string{"ticket_audits": {`{"id":2,"ticket_id":1}`}},
		logs: "KEY",
	},
	"slack": {
		answers: map[string]any{
			"GET /api/conversations.list?exclude_archived=True&types=public_channel&types=private_channel":          `{"channels": [{"id": "C1", "name": "one"}], "response_metadata": {"next_cursor": "x"}}`,
			"GET /api/conversations.list?cursor=x&exclude_archived=True&types=public_channel&types=private_channel": `{"channels": [], "response_metadata": {"next_cursor": ""}}`,
			"GET /api/conversations.history?channel=C1&limit=200":                                                   `{"messages": [{"ts": "1.5"}, {"ts": "1.6"}]}`,
		},
		runs: [][]string{{
			"GET /api/conversations.list?exclude_archived=True&types=public_channel&types=private_channel", "GET /api/conversations.list?cursor=x&exclude_archived=True&types=public_channel&types=private_channel",
			"GET /api/conversations.history?channel=C1&limit=200",
		}},
		rows: map[string][]string{"messages": {`{"_channels_name":"one","ts":"1.5"}`, `{"_channels_name":"one","ts":"1.6"}`}},
		logs: "Bearer SLACK_TOKEN",
	},
	"pokemon": {
		answers: map[string]any{
			"GET /api/v2/berry?limit=2":     `{"results": [{"url": "https://pokeapi.test/api/v2/berry/1/"}], "next": null}`,
			"GET /api/v2/location?limit=2":  `{"results": [{"name": "sea"}], "next": "https://pokeapi.test/api/v2/location?offset=2"}`,
			"GET /api/v2/location?offset=2": `{"results": [{"name": "sky"}]}`, "GET /api/v2/berry/1/?limit=2": `{"id": 1, "size": 20}`,
		},
		runs: [][]string{{"GET /api/v2/berry?limit=2", "GET /api/v2/location?limit=2", "GET /api/v2/location?offset=2", "GET /api/v2/berry/1/?limit=2"}},
		rows: map[string][]string{"location": {`{"name":"sea"}`, `{"name":"sky"}`}, "details": {`{"id":1,"size":20}`}},
	},
	"chess": {
		answers: map[string]any{
			"GET /pub/titled/GM": `{"players": [{"username": "a"}, {"username": "b"}, {"username": "c"}]}`,
			"GET /pub/player/a":  `{"player_id": 1, "url": "x"}`, "GET /pub/player/b": `{"player_id": 2, "status": "closed"}`, "GET /pub/player/c": restAnswer{status: 404, body: `{}`},
		},
		runs: [][]string{{"GET /pub/titled/GM", "GET /pub/player/a", "GET /pub/player/b", "GET /pub/player/c"}},
		rows: map[string][]string{"profiles": {`{"player_id":1,"url":"x"}`}},
	},
	"processing": {
		answers: map[string]any{
			"GET /posts":  `{"posts": [{"id": 1, "author": "Ada", "stars": 3}, {"id": 2, "author": "Eve"}, {"id": 12, "author": "Bob"}]}`,
			"GET /drafts": `[{"id": 1}]`, "GET /authors": `{"authors": [{"id": 1, "name": "Ada"}]}`,
		},
		runs: [][]string{{"GET /posts", "GET /drafts", "GET /authors"}},
		rows: map[string][]string{"blog_posts": {`{"author":"Ada","id":1,"stars":3}`}, "drafts": {`{"id":1}`}, "authors": {`{"id":1,"name":"Ada"}`}},
		logs: "Bearer TOKEN",
	},
}

// restServer is an API that answers as a case says, and writes down what it was asked.
type restServer struct {
	of      restCase
	address string // of the API, as the configuration names it
	mu      sync.Mutex
	asked   []string
	seen    map[string]bool
	logs    map[string]bool
}

func (a *restServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	request := r.Method + " " + r.URL.Path
	if query := r.URL.Query(); len(query) > 0 {
		request += "?" + strings.NewReplacer("%3A", ":", "%2B", "+", "%5B", "[", "%5D", "]", "+", " ", "%27", "'", "%3E", ">", "%3D", "=", "%2A", "*").Replace(query.Encode())
	}
	if body, _ := io.ReadAll(r.Body); len(body) > 0 {
		request += " " + compactJSON(string(body))
	}
	if _, has := a.of.answers[request+" again"]; has && a.seen[request] {
		request += " again"
	}
	a.seen[request] = true
	a.asked = append(a.asked, request)
	if login := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key"); login != "" {
		a.logs[strings.Replace(login, "API_KEY", "key API_KEY", 1)] = true
	}
	answer, isAnswer := a.of.answers[request].(restAnswer)
	if !isAnswer {
		answer.body = a.of.answers[request]
	}
	if text, isText := answer.body.(string); isText {
		answer.body = strings.ReplaceAll(text, a.address, "http://"+r.Host)
	}
	w.Header().Set("Content-Type", "application/json")
	for name, value := range answer.headers {
		w.Header().Set(name, value)
	}
	if answer.status != 0 {
		w.WriteHeader(answer.status)
	} else if answer.body == nil {
		w.WriteHeader(http.StatusNotFound) // which is a request that nobody expects
	}
	_, _ = fmt.Fprint(w, answer.body)
}

func compactJSON(text string) string {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return text
	}
	out, _ := json.Marshal(value)
	return string(out)
}

// TestRestAPI runs playbooks that were made of configurations of dlt: they ask and write what dlt does.
func TestRestAPI(t *testing.T) {
	t.Parallel()
	for name, of := range restCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture, _, _ := strings.Cut(name, " ")
			paths, err := filepath.Glob(filepath.Join("..", "..", "program", "connector", "testdata", "dlt", fixture+".[pj]*"))
			require.NoError(t, err)
			require.Len(t, paths, 1)
			data, err := os.ReadFile(paths[0])
			require.NoError(t, err)
			of.play(t, fixture, string(data))
		})
	}
}

func (of restCase) play(t *testing.T, name, config string) {
	address := strings.SplitAfter(config[strings.Index(config, "https://"):], ".test")[0]
	server := &restServer{of: of, address: address, seen: map[string]bool{}, logs: map[string]bool{}}
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	converted, err := connector.ConvertRestAPI([]byte(strings.ReplaceAll(config, address, listener.URL)), connector.Options{Name: name})
	require.NoError(t, err)
	w := &world{play: play{t: t, connector: name, stream: name}, env: testenv.Temporal(t), dir: t.TempDir()}
	w.queue = w.env.NewTaskQueue()
	connections := activities.Connections{}
	for _, one := range converted.Connections {
		connections[one.Name] = one.Form
	}
	w.resource = activities.Resources{Connections: connections, AllowPython: true, Directory: w.dir}
	var head struct{ Workload map[string]any }
	require.NoError(t, yaml.Unmarshal(converted.Playbook, &head))
	for key, value := range of.workload {
		head.Workload[key] = value
	}
	workload, err := expression.Canonical(head.Workload)
	require.NoError(t, err)
	w.input = protocol.Input{Name: name + ".yaml", Source: string(converted.Playbook), Workload: expression.Of(workload)}
	for _, requests := range of.runs {
		server.asked = nil
		problems := w.runOnce(0)
		if of.fail != "" {
			require.ErrorContains(t, fmt.Errorf("%s", problems), of.fail)
		} else {
			require.Empty(t, problems, "%s", converted.Playbook)
		}
		require.Equal(t, requests, server.asked, "%s", converted.Playbook)
	}
	if of.logs != "" {
		require.Equal(t, map[string]bool{of.logs: true}, server.logs)
	}
	for table, rows := range of.rows {
		require.Equal(t, rows, w.rowsOf(table), "%s\n%s", table, converted.Playbook)
	}
}

// rowsOf returns the rows of a table as JSON, sorted.
func (w *world) rowsOf(table string) (rows []string) {
	paths, err := filepath.Glob(filepath.Join(w.dir, "*.db"))
	require.NoError(w.t, err)
	require.Len(w.t, paths, 1)
	db, err := sql.Open("sqlite", paths[0])
	require.NoError(w.t, err)
	defer db.Close()
	found, err := db.QueryContext(w.t.Context(), `SELECT * FROM "`+table+`"`)
	require.NoError(w.t, err)
	defer found.Close()
	columns, err := found.Columns()
	require.NoError(w.t, err)
	for found.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(w.t, found.Scan(into...))
		row := map[string]any{}
		for i, name := range columns {
			if text, isText := values[i].(string); isText && strings.HasPrefix(text, "{") {
				values[i] = json.RawMessage(text)
			}
			if values[i] != nil {
				row[name] = values[i]
			}
		}
		text, err := json.Marshal(row)
		require.NoError(w.t, err)
		rows = append(rows, string(text))
	}
	require.NoError(w.t, found.Err())
	slices.Sort(rows)
	return rows
}
