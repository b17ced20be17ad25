package scaffold

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/expression"
)

// service is what is known about an API's responses from its host, if there is no example.
type service struct {
	host    string   // its end
	answer  string   // JSON; RESOURCE stands for the last part of the path
	accepts []string // parameters that the API knows
	linked  bool     // the header Link leads to the next page
	path    string   // a part of the path that requests have, "" for any
}

// services are widely used APIs. Their documentation describes their pagination.
var services = []service{
	{host: "api.github.com", answer: `[{"id": 1}]`, accepts: []string{"per_page"}, linked: true},
	{host: "gitlab.com", answer: `[{"id": 1}]`, accepts: []string{"per_page"}, linked: true},
	{host: "sentry.io", answer: `[{"id": "1"}]`, linked: true},
	{host: "api.stripe.com", answer: `{"object": "list", "data": [{"id": "x_1"}], "has_more": false}`, accepts: []string{"limit", "starting_after"}},
	{host: ".myshopify.com", answer: `{"RESOURCE": [{"id": 1}]}`, accepts: []string{"limit"}, linked: true},
	{host: "api.hubapi.com", answer: `{"results": [{"id": "1"}], "paging": {"next": {"after": "2"}}}`, accepts: []string{"limit", "after"}},
	{host: "api.notion.com", answer: `{"results": [{"id": "1"}], "has_more": false, "next_cursor": null}`, accepts: []string{"page_size", "start_cursor"}},
	{host: "slack.com", answer: `{"ok": true, "items": [{"id": "1"}], "response_metadata": {"next_cursor": "x"}}`, accepts: []string{"limit", "cursor"}, path: ".list"},
	{host: ".zendesk.com", answer: `{"RESOURCE": [{"id": 1}], "after_cursor": "x", "after_url": "https://x", "end_of_stream": false}`, path: "/cursor"},
	{host: ".zendesk.com", answer: `{"RESOURCE": [{"id": 1}], "next_page": "https://x", "end_time": 1, "end_of_stream": false}`, path: "/incremental/"},
	{host: ".zendesk.com", answer: `{"RESOURCE": [{"id": 1}], "meta": {"has_more": false, "after_cursor": "x"}, "links": {"next": "https://x"}}`, accepts: []string{"page[size]", "page[after]"}},
	{host: "api.fda.gov", answer: `{"meta": {"results": {"skip": 0, "limit": 1, "total": 1}}, "results": [{"id": "1"}]}`, accepts: []string{"skip", "limit"}, path: "/label"},
	{host: "api.fda.gov", answer: `{"meta": {"results": {"skip": 0, "limit": 1, "total": 1}}, "results": [{"name": "x"}]}`, accepts: []string{"skip", "limit"}},
	{host: "api.airtable.com", answer: `{"records": [{"id": "rec1"}], "offset": "x"}`, accepts: []string{"pageSize", "offset"}},
	{host: "graph.microsoft.com", answer: `{"value": [{"id": "1"}], "@odata.nextLink": "https://x"}`, accepts: []string{"$top"}},
	{host: ".googleapis.com", answer: `{"items": [{"id": "1"}], "nextPageToken": "x"}`, accepts: []string{"maxResults", "pageToken"}},
	{host: "api.twilio.com", answer: `{"RESOURCE": [{"sid": "1"}], "next_page_uri": "/x"}`, accepts: []string{"PageSize"}},
	{host: "api.spotify.com", answer: `{"items": [{"id": "1"}], "next": "https://x", "limit": 1, "offset": 0, "total": 1}`, accepts: []string{"limit", "offset"}},
	{host: "api.intercom.io", answer: `{"data": [{"id": "1"}], "pages": {"next": {"starting_after": "x"}}}`, accepts: []string{"per_page", "starting_after"}},
	{host: "app.asana.com", answer: `{"data": [{"gid": "1"}], "next_page": {"offset": "x", "uri": "https://x"}}`, accepts: []string{"limit", "offset"}},
	{host: "api.pagerduty.com", answer: `{"RESOURCE": [{"id": "1"}], "limit": 1, "offset": 0, "more": false}`, accepts: []string{"limit", "offset"}},
	{host: ".atlassian.net", answer: `{"issues": [{"id": "1"}], "startAt": 0, "maxResults": 1, "total": 1}`, accepts: []string{"startAt", "maxResults"}},
	{host: ".salesforce.com", answer: `{"records": [{"Id": "1"}], "done": true, "totalSize": 1, "nextRecordsUrl": "/x"}`, path: "/query"},
	{host: "pokeapi.co", answer: `{"count": 1, "next": "https://x", "results": [{"name": "x"}]}`, accepts: []string{"limit", "offset"}},
}

// applyKnownService adds what is known about the API's responses if the description has none: by host, else from the
// request's parameters.
func (w *writer) applyKnownService() {
	if w.of.Answer != nil && (w.of.Answer.Body != nil || w.of.Answer.Linked) {
		return
	}
	parsed, err := url.Parse(w.of.Base)
	if err != nil || w.guessGraphQL() {
		return
	}
	segments := strings.Split(strings.Trim(w.of.Path, "/"), "/")
	last := segments[len(segments)-1]
	if strings.TrimSuffix(last, ".json") == "cursor" && len(segments) > 1 { // an export of what is named before
		last = segments[len(segments)-2]
	}
	for _, one := range services {
		if !strings.HasSuffix("."+parsed.Hostname(), "."+strings.TrimPrefix(one.host, ".")) || !strings.Contains(w.of.Path, one.path) || !w.requestsMany(last, one) {
			continue
		}
		w.of.Answer = &Response{Body: decodeJSON(strings.Replace(one.answer, "RESOURCE", resourceOf(last), 1)), Linked: one.linked}
		for _, name := range one.accepts {
			w.of.Accepts = append(w.of.Accepts, Pair{name, nil})
		}
		w.noteGuess("paging follows the documented format of " + strings.TrimPrefix(one.host, "."))
		return
	}
	w.guessRows()
}

// requestsMany reports whether a request is for a list: by its parameters, name or path.
func (w *writer) requestsMany(last string, of service) bool {
	if w.of.Method == "POST" {
		return w.of.Body != nil && (strings.HasSuffix(last, "query") || strings.HasSuffix(last, "search"))
	}
	f := newFinder(w.of)
	for _, names := range [][]string{sizeParams, pageParams, offsetParams, cursorParams} {
		if name, _ := f.findParam(names); name != "" {
			return true
		}
	}
	return w.of.Method == "GET" && (of.path != "" || strings.HasSuffix(strings.TrimSuffix(last, ".json"), "s"))
}

// resourceOf returns the name of a resource for use in a JSON string.
func resourceOf(segment string) string {
	segment = strings.TrimSuffix(segment, ".json")
	if !identifier.MatchString(segment) {
		return "items"
	}
	return strings.ToLower(segment)
}

// guessRows guesses where the rows are if the request has parameters for page, offset or page size. If only the size
// is known, it assumes an offset: an API that paginates differently returns the first page again, which is an error.
func (w *writer) guessRows() {
	f := newFinder(w.of)
	for _, names := range [][]string{pageParams, offsetParams, guessedSizes} {
		name, _ := f.findParam(names)
		if name == "" || w.of.Method != "GET" {
			continue
		}
		w.of.Answer = &Response{Body: decodeJSON(`{"data": [{"id": 1}]}`)}
		w.noteGuess("the response format is unknown; rows are assumed to be in data")
		if cursor, _ := f.findParam(cursorParams); slices.Contains(guessedSizes, plainName(name)) && cursor == "" {
			w.of.Accepts = append(w.of.Accepts, Pair{"offset", nil})
			w.noteGuess("nothing shows how the API pages; the playbook counts rows in offset")
		}
		return
	}
}

// guessedSizes are the names of parameters that almost certainly mean the page size.
var guessedSizes = []string{"limit", "perpage", "pagesize", "maxresults", "pagelimit", "resultsperpage", "itemsperpage"}

// noteGuess adds a note about a guess, in the file and in the output.
func (w *writer) noteGuess(guess string) {
	w.guesses = append(w.guesses, guess)
	how := "; check with starter try, or use --probe to send the request"
	if w.of.probed {
		how = "; check with starter try"
	}
	w.made.Notes = append(w.made.Notes, "a guess: "+guess+how)
}

// guessGraphQL derives the structure of the response from a GraphQL query that requests a pageInfo.
func (w *writer) guessGraphQL() bool {
	query, _ := expression.MapOf(w.of.Body)["query"].(string)
	path := pageInfoPath(query)
	if len(path) == 0 {
		return false
	}
	rows := any([]any{map[string]any{"id": "1"}})
	name := "nodes"
	if !strings.Contains(query, "nodes") {
		name, rows = "edges", []any{map[string]any{"node": map[string]any{"id": "1"}}}
	}
	path = append([]string{"data"}, path...)
	answer := setAt(nil, append(slices.Clone(path), name), rows)
	answer = setAt(answer, append(slices.Clone(path), "pageInfo"), map[string]any{"hasNextPage": false, "endCursor": nil})
	w.of.Answer = &Response{Body: answer}
	return true
}

var queryToken = regexp.MustCompile(`"(?:\\.|[^"\\])*"|[A-Za-z_][A-Za-z0-9_]*|[{}():]`)

// pageInfoPath returns the path to a query's pageInfo, using aliases; nil if it has none.
func pageInfoPath(query string) []string {
	var open []string
	last, inParens, isAliased := "", 0, false
	for _, token := range queryToken.FindAllString(query, -1) {
		switch {
		case token == "(":
			inParens++
		case token == ")":
			inParens = max(inParens-1, 0)
		case inParens > 0 || token[0] == '"':
		case token == "{":
			open = append(open, last)
		case token == "}":
			open = open[:max(len(open)-1, 0)]
		case token == ":":
			isAliased = true
		case token == "pageInfo" && len(open) > 1:
			return slices.Clone(open[1:])
		case isAliased: // what is behind the alias, under which the answer has it
			isAliased = false
		default:
			last = token
		}
	}
	return nil
}
