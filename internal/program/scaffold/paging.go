package scaffold

import (
	"fmt"
	"slices"
	"strings"

	"reprise/internal/program/node"
	"reprise/interpreter/expression"
)

// The styles of APIs.
const (
	StylePage    = "page"
	StyleOffset  = "offset"
	StyleCursor  = "cursor"
	StyleLink    = "link"
	StylePoll    = "poll"
	StyleExport  = "export"
	StyleGraphQL = "graphql"
	StyleWebhook = "webhook"
)

// Styles are the supported styles.
var Styles = []string{StylePage, StyleOffset, StyleCursor, StyleLink, StylePoll, StyleExport, StyleGraphQL, StyleWebhook}

// Normalized names of parameters, by meaning.
var (
	pageParams   = []string{"page", "pagenumber", "pageno", "pagenum", "pageindex", "currentpage", "pg", "p"}
	offsetParams = []string{"offset", "skip", "startindex", "startat", "start", "resultoffset", "firstresult", "pageoffset", "sysparmoffset", "recordoffset", "from"}
	sizeParams   = []string{
		"limit", "perpage", "pagesize", "maxresults", "size", "count", "pagelimit", "top", "take", "rows", "resultsperpage", "itemsperpage", "sysparmlimit", "resultlimit", "first", "max", "n",
	}
	cursorParams = []string{
		"cursor", "pagetoken", "nexttoken", "nextpagetoken", "nextcursor", "after", "startcursor", "startingafter", "pageafter", "pagecursor", "continuationtoken", "continuation", "marker",
		"bookmark", "scrollid", "paginationtoken", "afterid", "sinceid", "pagekey", "aftercursor", "fromcursor", "continue", "nextpage", "token", "next",
	}
)

// Normalized names of members in responses, by meaning.
var (
	moreMembers  = []string{"hasmore", "hasnextpage", "hasnext", "more", "morerecords", "hasmoreitems", "istruncated", "truncated", "moreresults"}
	lastMembers  = []string{"islast", "islastpage", "last", "done", "complete", "isdone", "finished", "endofrecords", "endofstream"}
	totalMembers = []string{"total", "totalcount", "totalresults", "totalitems", "totalrecords", "totalelements", "totalsize", "numfound", "totalhits", "count", "totalrows", "recordcount"}
	pagesMembers = []string{"totalpages", "pagecount", "lastpage", "numpages", "numberofpages", "pages", "maxpage"}
	urlMembers   = []string{"next", "nextpage", "nextpageurl", "nexturl", "nextlink", "nexthref", "odatanextlink", "nextrecordsurl", "nextpagelink", "nextpageuri", "nextpagepath", "afterurl"}
	markMembers  = []string{
		"nextcursor", "nextpagetoken", "nexttoken", "continuationtoken", "nextpagecursor", "endcursor", "aftercursor", "paginationtoken", "cursor", "scrollid", "bookmark", "nextmarker",
		"marker", "after", "next", "nextpage", "continue", "continuation", "pagetoken", "nextafter", "offset",
	}
)

// paging is how an API paginates, with what a playbook and its test need.
type paging struct {
	style string
	// when is the expression that is true if there are more pages.
	when string
	// One of params, url and body says how the next request differs.
	params []Pair
	url    string
	body   any
	// more and last are the members with which a test's response says that there is another page, or that there is
	// none.
	more, last []answerMember
	// moreHeaders are the headers of a test's response that has another page.
	moreHeaders map[string]string
	// sent are the parameters of the second request of the test; nil if they are not compared.
	sent map[string]any
	// sized is set if a page with fewer rows than page_size is the last one, so that the page size has to be known.
	sized bool
	// guess describes which part of it is a guess; "" if none is.
	guess string
}

// addSign adds a member of the response with its values for a page that has a next one, and for the last page.
func (p *paging) addSign(path []string, more, last any) {
	p.more, p.last = append(p.more, answerMember{path, more}), append(p.last, answerMember{path, last})
}

// finder finds out how a request paginates.
type finder struct {
	of      *Description
	answer  any
	rows    []string
	hasRows bool
	members []answerMember
	size    string // name of the parameter for the number of rows of a page, "" for none
}

func newFinder(of *Description) *finder {
	f := &finder{of: of}
	segments := strings.Split(strings.Trim(of.Path, "/"), "/")
	resource := strings.TrimSuffix(segments[len(segments)-1], ".json")
	if of.Answer != nil {
		f.answer = of.Answer.Body
		f.rows, f.hasRows = rowsOf(f.answer, resource)
		f.members = membersOf(f.answer)
	}
	f.size, _ = f.findParam(sizeParams)
	return f
}

func pairsOfMap(value any) (pairs []Pair) {
	for _, one := range membersOf(value) {
		if len(one.path) == 1 {
			pairs = append(pairs, Pair{one.path[0], one.value})
		}
	}
	return pairs
}

// findParam finds the first of some parameters, in the order of names.
func (f *finder) findParam(names []string) (name string, value any) {
	for _, wanted := range names {
		for _, pair := range slices.Concat(f.of.Params, f.of.Accepts, pairsOfMap(f.of.Body)) {
			if plainName(strings.TrimPrefix(pair.Name, "$")) == wanted {
				return pair.Name, pair.Value
			}
		}
	}
	return "", nil
}

// isInBody reports whether a parameter is a member of the body.
func (f *finder) isInBody(name string) bool {
	if body, isMap := f.of.Body.(map[string]any); isMap {
		_, inParams := findPair(f.of.Params, name)
		_, inBody := body[name]
		return inBody || !inParams && f.of.Method == "POST"
	}
	return false
}

// findMember finds the first member that has one of some names and fits.
func (f *finder) findMember(names []string, fits func(answerMember) bool) (answerMember, bool) {
	for _, wanted := range names {
		for _, one := range f.members {
			if one.plainName() == wanted && fits(one) {
				return one, true
			}
		}
	}
	return answerMember{}, false
}

func isNumber(m answerMember) bool { _, is := m.value.(int); return is }

func isBool(m answerMember) bool { _, is := m.value.(bool); return is }

// isAddress reports whether a member is a URL or a path.
func isAddress(m answerMember) bool {
	text, isText := m.value.(string)
	return isText && (strings.Contains(text, "://") || strings.HasPrefix(text, "/") || strings.HasPrefix(text, "?"))
}

func isMark(m answerMember) bool {
	switch value := m.value.(type) {
	case nil:
		return true
	case string:
		return !isAddress(m) && value != ""
	}
	return false
}

// findPaging finds out how the request paginates; the style is "" if it does not.
func (f *finder) findPaging() paging {
	for _, look := range []func() (paging, bool){f.graphqlPaging, f.comparePages, f.linkHeader, f.ownMark, f.addressPaging, f.markPaging, f.lastRow, f.offsetPaging, f.numberPaging} {
		if found, ok := look(); ok {
			return found
		}
	}
	return paging{}
}

// rowsText returns an expression for the rows of a response.
func (f *finder) rowsText() string { return expressionOf("response", f.rows) }

// linkHeader returns pagination by the Link header (RFC 8288).
func (f *finder) linkHeader() (paging, bool) {
	if f.of.Answer == nil || !f.of.Answer.Linked {
		return paging{}, false
	}
	return paging{
		style: StyleLink, when: "this.meta.links.next is defined", url: "{{ this.meta.links.next }}",
		moreHeaders: map[string]string{"link": fmt.Sprintf(`<%s>; rel="next"`, f.nextAddress())},
	}, true
}

// nextAddress returns the URL of a test's second page.
func (f *finder) nextAddress() string {
	return f.of.Base + inPath.ReplaceAllString(f.of.Path, "1") + "?page=2"
}

// addressPaging returns pagination by a member with the URL of the next page.
func (f *finder) addressPaging() (paging, bool) {
	isNext := func(m answerMember) bool {
		return isAddress(m) && (slices.Contains(urlMembers, m.plainName()) || m.parentName() == "next" && slices.Contains([]string{"href", "url", "link", "uri"}, m.plainName()))
	}
	for _, one := range f.members {
		if !isNext(one) {
			continue
		}
		text := expressionOf("response", one.path)
		p := paging{style: StyleLink, when: text, url: "{{ " + text + " }}"}
		p.addSign(one.path, f.nextAddress(), nil)
		f.readUntilEnd(&p)
		return p, true
	}
	return paging{}, false
}

// ownMark returns pagination by a cursor that the next request sends in the parameter of the same name.
func (f *finder) ownMark() (paging, bool) {
	for _, one := range f.members {
		if !slices.Contains(markMembers, one.plainName()) || !isMark(one) || one.value == nil {
			continue
		}
		if param, _ := f.findParam([]string{one.plainName()}); param != "" {
			return f.pagingByMark(one.path, param), true
		}
	}
	return paging{}, false
}

// markPaging returns pagination by a cursor that the next request sends.
func (f *finder) markPaging() (paging, bool) {
	found, ok := f.findMember(markMembers, func(m answerMember) bool {
		return isMark(m) && (m.value != nil || !slices.Contains([]string{"next", "after", "cursor", "offset"}, m.plainName()) || f.cursorParam(m) != "")
	})
	if !ok || found.plainName() == "offset" && f.cursorParam(found) == "" {
		return paging{}, false
	}
	param := f.cursorParam(found)
	if param != "" {
		return f.pagingByMark(found.path, param), true
	}
	param = guessedParam(found.path[len(found.path)-1])
	p := f.pagingByMark(found.path, param)
	p.guess = "the parameter " + param + " sends the value that the response has in " + strings.Join(found.path, ".")
	return p, true
}

// pagingByMark returns pagination by a member whose value the next request sends as a parameter.
func (f *finder) pagingByMark(path []string, param string) paging {
	text := expressionOf("response", path)
	p := paging{style: StyleCursor, when: text}
	p.addSign(path, "mark-2", nil)
	if more, has := f.findMember(moreMembers, isBool); has {
		p.when = expressionOf("response", more.path)
		p.addSign(more.path, true, false)
	} else {
		f.readUntilEnd(&p)
	}
	f.sendParam(&p, param, node.Verbatim("{{ "+text+" }}"), "mark-2")
	return p
}

// readUntilEnd ends pagination when the response says that its page is the last one, because a link to a next page may
// still be there.
func (f *finder) readUntilEnd(p *paging) {
	if last, has := f.findMember(lastMembers, isBool); has {
		p.when = "not " + expressionOf("response", last.path) + " and " + p.when
		p.addSign(last.path, false, true)
	}
}

// sendParam adds a parameter to the next request; sent is its value in the test.
func (f *finder) sendParam(p *paging, param string, value node.Verbatim, sent any) {
	if f.isInBody(param) {
		p.body = map[string]any{param: value}
		return
	}
	p.params, p.sent = []Pair{{param, value}}, map[string]any{param: sent}
}

// cursorParam returns the parameter that sends a cursor, preferably one of the same name.
func (f *finder) cursorParam(m answerMember) string {
	own := strings.TrimPrefix(m.plainName(), "next")
	names := []string{m.plainName(), own}
	switch own {
	case "cursor", "endcursor", "pagecursor":
		names = append(names, "cursor", "after", "startcursor", "pagecursor", "pageafter")
	case "pagetoken", "token", "paginationtoken":
		names = append(names, "pagetoken", "nextpagetoken", "paginationtoken", "nexttoken")
	case "after":
		names = append(names, "pageafter")
	}
	if name, _ := f.findParam(names); name != "" {
		return name
	}
	if own == "offset" {
		return ""
	}
	name, _ := f.findParam(cursorParams)
	return name
}

// guessedParam returns the probable name of a parameter.
func guessedParam(name string) string {
	for _, prefix := range []string{"next_", "next"} {
		if rest, has := strings.CutPrefix(name, prefix); has && rest != "" {
			return strings.ToLower(rest[:1]) + rest[1:]
		}
	}
	if plainName(name) == "endcursor" {
		return "after"
	}
	if plainName(name) == "next" {
		return "cursor"
	}
	return name
}

// lastRow returns pagination by the key of the last row, such as Stripe's starting_after.
func (f *finder) lastRow() (paging, bool) {
	param, _ := f.findParam([]string{"startingafter", "afterid", "sinceid", "lastid"})
	more, has := f.findMember(moreMembers, isBool)
	key := keyOf(valueAt(f.answer, f.rows))
	if param == "" || !f.hasRows || key == "" {
		return paging{}, false
	}
	p := paging{style: StyleCursor, when: "len(" + f.rowsText() + ") > 0"}
	if has {
		p.when = expressionOf("response", more.path)
		p.addSign(more.path, true, false)
	} else {
		p.last = []answerMember{{f.rows, []any{}}}
	}
	f.sendParam(&p, param, node.Verbatim("{{ "+expressionOf("last("+f.rowsText()+")", []string{key})+" }}"), nil)
	p.sent = nil
	return p, true
}

// offsetPaging returns pagination by row offset.
func (f *finder) offsetPaging() (paging, bool) {
	param, value := f.findParam(offsetParams)
	if param == "" || !f.hasRows {
		return paging{}, false
	}
	if _, isText := value.(string); isText {
		return paging{}, false
	}
	first, _ := value.(int)
	return f.pagingByOffset(param, first), true
}

func (f *finder) pagingByOffset(param string, first int) paging {
	p := paging{style: StyleOffset}
	next := "len(pages)"
	if first != 0 {
		next = fmt.Sprintf("len(pages) + %d", first)
	}
	f.setEnd(&p)
	f.sendParam(&p, param, node.Verbatim("{{ "+next+" }}"), first+testRows)
	f.of.Params = f.firstParams(param, first)
	return p
}

// firstParams returns the request's parameters with the one that the first page needs.
func (f *finder) firstParams(param string, value int) []Pair {
	if f.isInBody(param) {
		return f.of.Params
	}
	pairs := slices.Clone(f.of.Params)
	for i := range pairs {
		if pairs[i].Name == param {
			return pairs
		}
	}
	return append(pairs, Pair{param, value})
}

// numberPaging returns pagination by page number.
func (f *finder) numberPaging() (paging, bool) {
	param, value := f.findParam(pageParams)
	if param == "" || !f.hasRows {
		return paging{}, false
	}
	first, isNumber := value.(int)
	if !isNumber {
		first = 1
	}
	return f.pagingByNumber(param, first), true
}

func (f *finder) pagingByNumber(param string, first int) paging {
	p := paging{style: StylePage}
	next := "_retry.page"
	if first != 0 {
		next = fmt.Sprintf("_retry.page + %d", first)
	}
	if pages, has := f.findMember(pagesMembers, isNumber); has {
		p.when = "_retry.page < " + expressionOf("response", pages.path)
		p.addSign(pages.path, 2, 2)
	} else {
		f.setEnd(&p)
	}
	f.sendParam(&p, param, node.Verbatim("{{ "+next+" }}"), first+1)
	f.of.Params = f.firstParams(param, first)
	return p
}

// setEnd sets when counted pages end: when the response says so, or else with a page that is not full.
func (f *finder) setEnd(p *paging) {
	rows := f.rowsText()
	if more, has := f.findMember(moreMembers, isBool); has {
		p.when = expressionOf("response", more.path)
		p.addSign(more.path, true, false)
		return
	}
	if last, has := f.findMember(lastMembers, isBool); has {
		p.when = "not " + expressionOf("response", last.path)
		p.addSign(last.path, false, true)
		return
	}
	if total, has := f.findMember(totalMembers, isNumber); has {
		p.when = "len(pages) < " + expressionOf("response", total.path)
		p.addSign(total.path, testRows+1, testRows+1)
		return
	}
	if f.size != "" {
		p.sized, p.when = true, "len("+rows+") == page_size"
		p.guess = "a page with fewer rows than page_size is the last one"
		return
	}
	p.when = "len(" + rows + ") > 0"
	p.guess = "a page without rows is the last one"
	p.last = []answerMember{{f.rows, []any{}}}
}

// testRows is the number of rows on a test's first page.
const testRows = 2

// comparePages finds the parameter in which later requests differ, and where its value comes from.
func (f *finder) comparePages() (paging, bool) {
	if len(f.of.Later) == 0 {
		return paging{}, false
	}
	later := f.of.Later[0]
	for _, pair := range slices.Concat(later.Params, pairsOfMap(later.Body), pairsOfMap(expression.MapOf(later.Body)["variables"])) {
		before, had := findPair(slices.Concat(f.of.Params, pairsOfMap(f.of.Body), pairsOfMap(expression.MapOf(f.of.Body)["variables"])), pair.Name)
		if had && expression.Text(before) == expression.Text(pair.Value) {
			continue
		}
		if path, found := f.findSource(pair.Value); found {
			return f.pagingByMark(path, pair.Name), true
		}
		number, isNumber := pair.Value.(int)
		first, wasNumber := before.(int)
		switch {
		case !isNumber || had && !wasNumber || !f.hasRows:
		case slices.Contains(offsetParams, plainName(pair.Name)), number-first > 1 && had:
			return f.pagingByOffset(pair.Name, first), true
		case had:
			return f.pagingByNumber(pair.Name, first), true
		default: // the first request of a browser often names no page
			return f.pagingByNumber(pair.Name, number-1), true
		}
	}
	return paging{}, false
}

// findSource returns where a response has a value that the next request sends.
func (f *finder) findSource(value any) ([]string, bool) {
	const least = 4 // characters of a value that is not there by chance
	text := expression.Text(value)
	for _, one := range f.members {
		if held, isText := one.value.(string); isText && held == text && len(text) >= least {
			return one.path, true
		}
	}
	return nil, false
}

// graphqlPaging returns pagination by a pageInfo in the response (the GraphQL cursor connections specification).
func (f *finder) graphqlPaging() (paging, bool) {
	query, isText := expression.MapOf(f.of.Body)["query"].(string)
	if !isText || !strings.Contains(query, "{") {
		return paging{}, false
	}
	for _, one := range f.members {
		if one.plainName() != "pageinfo" {
			continue
		}
		f.rows, f.hasRows = rowsOf(valueAt(f.answer, one.path[:len(one.path)-1]), "nodes")
		f.rows = append(slices.Clone(one.path[:len(one.path)-1]), f.rows...)
		info := expressionOf("response", one.path)
		variable := "after"
		if !strings.Contains(query, "$after") && strings.Contains(query, "$cursor") {
			variable = "cursor"
		}
		p := paging{style: StyleGraphQL, when: info + ".hasNextPage", body: map[string]any{"variables": map[string]any{variable: node.Verbatim("{{ " + info + ".endCursor }}")}}}
		p.addSign(append(slices.Clone(one.path), "hasNextPage"), true, false)
		p.addSign(append(slices.Clone(one.path), "endCursor"), "mark-2", nil)
		return p, true
	}
	return paging{style: StyleGraphQL}, true
}
