package connector

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"reprise/internal/program/connector/pyliteral"
	"reprise/internal/program/node"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

var paginatorClasses = map[string]authClass{
	"SinglePagePaginator":         {"single_page", nil},
	"JSONLinkPaginator":           {"json_link", []string{"next_url_path"}},
	"JSONResponsePaginator":       {"json_link", []string{"next_url_path"}},
	"HeaderLinkPaginator":         {"header_link", []string{"links_next_key"}},
	"HeaderCursorPaginator":       {"header_cursor", []string{"cursor_key", "cursor_param"}},
	"JSONResponseCursorPaginator": {"cursor", []string{"cursor_path", "cursor_param", "cursor_body_path"}},
	"OffsetPaginator":             {"offset", []string{"limit", "offset", "offset_param", "limit_param", "total_path", "maximum_offset", "stop_after_empty_page", "has_more_path"}},
	"PageNumberPaginator":         {"page_number", []string{"base_page", "page", "page_param", "total_path", "maximum_page", "stop_after_empty_page", "has_more_path"}},
}

// rangeKeys are the keys of paginators that count.
var rangeKeys = []string{"total_path", "stop_after_empty_page", "has_more_path"}

// pageKeys are the keys of each paginator.
var pageKeys = map[string][]string{
	"single_page": nil, "auto": nil, "json_link": {"next_url_path"}, "json_response": {"next_url_path"}, "header_link": {"links_next_key"},
	"header_cursor": {"cursor_key", "cursor_param"}, "cursor": {"cursor_path", "cursor_param", "cursor_body_path", "stop_after_empty_page", "has_more_path"},
	"offset":      append([]string{"limit", "offset", "offset_param", "limit_param", "maximum_offset", "offset_body_path", "limit_body_path"}, rangeKeys...),
	"page_number": append([]string{"base_page", "page", "page_param", "maximum_page", "page_body_path"}, rangeKeys...),
}

// isSingleEntity reports whether dlt reads a response as one row, on one page: the path ends with a placeholder.
func (of *dltResource) isSingleEntity() bool {
	return singleEntity.MatchString(path.Base(of.endpoint.text("path")))
}

var singleEntity = regexp.MustCompile(`\{[A-Za-z0-9._-]+\}`)

// paginatorOf returns the configuration of the paginator of a resource.
func (r *restAPI) paginatorOf(of *dltResource) (component, string) {
	given := of.endpoint["paginator"]
	if given == nil && of.isSingleEntity() {
		return component{}, "single_page"
	}
	if given == nil {
		given = r.client["paginator"]
	}
	switch given := given.(type) {
	case nil:
		return component{}, "auto"
	case string:
		return component{}, given
	case map[string]any:
		if given["type"] == nil {
			return given, "auto"
		}
		return given, component(given).kind()
	case *pyliteral.CallExpr:
		if config := configOfCall(given, paginatorClasses); config != nil {
			return config, config.kind()
		}
	}
	return nil, kindOf(given)
}

// convertPaginator converts how a resource is paginated.
func (r *restAPI) convertPaginator(of *dltResource) {
	s := of.step
	config, kind := r.paginatorOf(of)
	keys, known := pageKeys[kind]
	if !known {
		s.addGap(atRetry, "paginator", "%s: only the first page is read", kind)
		return
	}
	r.noteUnknown(s, atRetry, config, append([]string{"type"}, keys...)...)
	p := &paging{changes: newInjection()}
	var err error
	switch kind {
	case "single_page":
		return
	case "auto":
		s.addGap(atRetry, "paginator", "dlt finds out from the first response how there are more pages; here the next link of the header Link is followed, and nothing else")
		p.url, p.token = r.linkOf("next")
		p.without = playbook.SortedKeys(s.params)
	case "header_link":
		p.url, p.token = r.linkOf(textOr(config["links_next_key"], "next"))
		p.without = playbook.SortedKeys(s.params)
	case "json_link", "json_response":
		p.token, err = responseMember(textOr(config["next_url_path"], "next"))
		p.url = node.Verbatim("{{ " + p.token.text + " }}")
		p.without = playbook.SortedKeys(s.params)
	case "header_cursor":
		p.token = pathCode("this", "meta", "headers", strings.ToLower(textOr(config["cursor_key"], "next")))
		p.changes.params[textOr(config["cursor_param"], "cursor")] = node.Verbatim("{{ " + p.token.text + " }}")
	case "cursor":
		p.token, err = responseMember(textOr(config["cursor_path"], "cursors.next"))
		if err == nil {
			err = placeValue(config, "cursor", "cursor", node.Verbatim("{{ "+p.token.text+" }}"), p.changes)
		}
		if err == nil {
			err = r.endOfCursor(of, p, config)
		}
	default:
		err = r.countPages(of, p, config, kind)
	}
	if err != nil {
		s.addGap(atRetry, "paginator", "%s: %v; only the first page is read", kind, err)
		return
	}
	if p.when.text == "" {
		p.when = p.token
	}
	if i := s.incremental; i != nil && i.feed {
		p.when = andCode(p.when, callCode("all", s.rowsCode(), i.conditionFrom(code{text: "#", prec: precAtom, path: true})))
	}
	p.when = afterSuccess(p.when)
	for name := range p.changes.body {
		if _, isMap := s.body.(map[string]any); s.body == nil || isMap {
			continue
		}
		s.addGap(atRetry, "paginator", "%s in a body that is no dict", name)
	}
	s.setPaging(p)
}

// textOr returns a text of a configuration, or its default.
func textOr(of any, usual string) string {
	if text, isText := of.(string); isText && text != "" {
		return text
	}
	return usual
}

// linkOf returns a link of the header Link.
func (r *restAPI) linkOf(name string) (any, code) {
	token := pathCode("this", "meta", "links", name)
	return node.Verbatim("{{ " + token.text + " }}"), token
}

// responseMember returns a member of the response by its JSONPath.
func responseMember(of string) (code, error) {
	keys, err := jsonPath(of)
	if err == nil && slices.Contains(keys, any("*")) {
		_, err = unsupportedError("the path %s with *", of)
	}
	return pathCode("response", keys...), err
}

// placeValue puts a value of the pagination where its configuration says: a param, or a member of the body.
func placeValue(config component, prefix, usual string, value any, into *injection) error {
	of := config.text(prefix + "_body_path")
	if of == "" {
		into.params[textOr(config[prefix+"_param"], usual)] = value
		return nil
	}
	keys, err := jsonPath(of)
	if err != nil {
		return err
	}
	mergedChanges(into.body, textKeys(keys), value)
	return nil
}

// numberOf returns a whole number of a configuration; known is false if it is none, such as the name of a variable.
func numberOf(config component, key string, usual int) (n int, known bool) {
	if config[key] == nil {
		return usual, true
	}
	return config.wholeNumber(key)
}

// countPages converts the paginators that count pages or rows. dlt ends at an empty page, at a total, or at a maximum,
// whichever comes first; a member that says whether there is more decides instead of totals.
func (r *restAPI) countPages(of *dltResource, p *paging, config component, kind string) error {
	s := of.step
	first, base, step := 0, 0, code{text: "1", prec: precAtom, value: 1, known: true}
	var known bool
	name, maximum, usual := "page", "maximum_page", "page"
	if kind == "offset" {
		name, maximum, usual = "offset", "maximum_offset", "offset"
		limit, isNumber := numberOf(config, "limit", 0)
		if !isNumber || limit <= 0 {
			_, err := unsupportedError("limit is no number")
			return err
		}
		step = constantCode(limit)
		if limit > testRows {
			step = r.sizeOf(limit)
		}
		first, known = numberOf(config, "offset", 0)
	} else if base, known = numberOf(config, "base_page", 0); known {
		first, known = numberOf(config, "page", base)
	}
	if !known {
		_, err := unsupportedError("the first %s is no number", name)
		return err
	}
	counted := code{text: "_retry.page", prec: precAtom, calm: true}
	if step.text != "1" {
		counted = code{text: "_retry.page * " + step.text, prec: precMultiply, calm: true}
	}
	next := plusCode(counted, first)
	before := newInjection()
	if kind == "offset" {
		if err := placeValue(config, "limit", "limit", templateValue([]code{step}), before); err != nil {
			return err
		}
	}
	if err := placeValue(config, name, usual, first, before); err != nil {
		return err
	}
	s.addInjection(before)
	p.token = next
	if err := placeValue(config, name, usual, node.Verbatim("{{ "+next.text+" }}"), p.changes); err != nil {
		return err
	}
	return r.endOfCount(of, p, config, plusCode(counted, first-base), maximum)
}

// moreOf returns the condition that a member of the response says that there are more pages. A response without it is an
// error, unless an empty page ends the pages before.
func (r *restAPI) moreOf(of *dltResource, path string, stops bool) (code, error) {
	member, err := responseMember(path)
	if err != nil {
		return code{}, err
	}
	r.requireMember(of, member, path, stops)
	return compareCode("in", code{text: "lower(string(" + member.text + "))", prec: precAtom}, constantCode([]any{"true", "t", "yes", "y", "on", "1"})), nil
}

// requireMember adds the policy that fails if a response lacks what the pagination needs.
func (r *restAPI) requireMember(of *dltResource, member code, path string, stops bool) {
	missing := code{text: "error is not defined and " + negate(definedCode(member)).text, prec: precAnd}
	if stops && !of.unknownRows() {
		missing = andCode(hasRowsCode(of.step), negate(definedCode(member)))
	}
	of.step.failures = append(of.step.failures, policy{when: missing.text, then: []pair{{"fail", "the answer has no " + path + ", which the pagination needs"}}})
}

// hasRowsCode returns the condition that a page has rows.
func hasRowsCode(s *step) code {
	rows := callCode("len", s.rowsCode())
	rows.falsy = true
	return compareCode(">", rows, constantCode(0))
}

// endOfCursor adds what else than a missing cursor ends the pages.
func (r *restAPI) endOfCursor(of *dltResource, p *paging, config component) error {
	p.when = p.token
	stops := config["stop_after_empty_page"] == true
	if more := config.text("has_more_path"); more != "" {
		continues, err := r.moreOf(of, more, stops)
		if err != nil {
			return err
		}
		p.when = continues
	}
	if stops && !of.unknownRows() {
		p.when = andCode(hasRowsCode(of.step), p.when)
	}
	return nil
}

// plusCode returns a sum with a constant.
func plusCode(of code, n int) code {
	if n == 0 {
		return of
	}
	return code{text: of.text + " + " + expression.Text(n), prec: precAdd, calm: true}
}

// endOfCount sets the condition under which there is another page. counted is how many pages or rows there are before it.
func (r *restAPI) endOfCount(of *dltResource, p *paging, config component, counted code, maximum string) error {
	p.when = constantCode(true)
	ends := false
	hasRows := hasRowsCode(of.step)
	stops := config["stop_after_empty_page"] != false
	more := config.text("has_more_path")
	total := textOr(config["total_path"], "")
	if _, given := config["total_path"]; !given {
		total = "total"
	}
	if total != "" {
		member, err := responseMember(total)
		if err != nil {
			return err
		}
		r.requireMember(of, member, total, stops)
		if more == "" {
			p.when = andCode(p.when, compareCode("<", counted, callCode("int", member)))
		}
		ends = true
	}
	if n, is := config.wholeNumber(maximum); is && more == "" {
		p.when = andCode(p.when, compareCode("<", p.token, constantCode(n)))
		ends = true
	}
	if more != "" {
		continues, err := r.moreOf(of, more, stops)
		if err != nil {
			return err
		}
		p.when, ends = continues, true
	}
	switch {
	case stops && !of.unknownRows():
		p.when = andCode(hasRows, p.when)
	case stops && !ends: // a response that is no list has rows that nothing names: its first page is the last one
		p.when = andCode(code{text: "type(response) == 'list'", prec: precCompare, calm: true}, hasRows)
	}
	return nil
}
