package connector

import (
	"fmt"
	"maps"
	"regexp"
	"strings"

	"reprise/internal/program/connector/jinja"
	"reprise/internal/program/node"
	"reprise/interpreter/expression"
)

// paging is the policy that fetches more pages.
type paging struct {
	when    code
	url     any // of the next request, nil for the same
	changes *injection
	// without are the params that only the first request has.
	without []string
	token   code
	size    any // of a page, nil where that is not known
}

// plainKey matches a key that needs no quotes in a path.
var plainKey = plainName

// tokenOf returns the token of the next page, with the condition under which there is one. The token is nil if the
// API does not paginate.
func (c *converter) tokenOf(s *step, retriever component) (*token, component) {
	paginator := retriever.childAt("paginator")
	switch kind := paginator.kind(); kind {
	case "", "NoPagination":
		return nil, nil
	case "DefaultPaginator":
	case "Custom":
		s.addGap(atRetry, customName(paginator, "CustomPaginator"), "only the first page is read")
		return nil, nil
	default:
		s.addGap(atRetry, kind, "only the first page is read")
		return nil, nil
	}
	strategy := paginator.childAt("pagination_strategy")
	t := &token{kind: strategy.kind()}
	var err error
	var into trace
	switch t.kind {
	case "CursorPagination":
		err = c.cursorToken(s, t, strategy, &into)
	case "OffsetIncrement", "PageIncrement":
		err = c.countedToken(s, t, strategy, &into)
	case "Custom":
		s.addGap(atRetry, customName(strategy, "CustomPaginationStrategy"), "only the first page is read")
		return nil, paginator
	default:
		s.addGap(atRetry, t.kind, "only the first page is read")
		return nil, paginator
	}
	if err != nil {
		s.addGap(atRetry, t.kind, "%v; only the first page is read", err)
		return nil, paginator
	}
	c.read.mergeTrace(into)
	return t, paginator
}

// token is how a pagination strategy finds the next page.
type token struct {
	kind  string
	value code
	when  code
	size  any // of a page
	first any // that the first request sends, nil for none
}

// responseScope returns the scope of templates over a response.
func (c *converter) responseScope(s *step) scope {
	rows := s.rowsCode()
	last := callCode("last", rows)
	last.falsy = rows.falsy
	size := callCode("len", rows)
	size.falsy = true
	return scope{
		"response": rootedKeys("response"),
		"headers": func(keys []any) (code, error) {
			if len(keys) > 0 {
				name, isText := keys[0].(string)
				switch {
				case !isText:
					return unsupportedError("a header whose name is no constant")
				case strings.EqualFold(name, "link") && len(keys) > 2 && keys[2] == "url":
					return pathCode("this", append([]any{"meta", "links"}, keys[1])...), nil
				case strings.EqualFold(name, "link") && len(keys) > 2 && plainText(keys[1]) && plainText(keys[2]):
					return linkAttribute(keys[1].(string), keys[2].(string)), nil
				case strings.EqualFold(name, "link"):
					return pathCode("this", append([]any{"meta", "links"}, keys[1:]...)...), nil
				}
				keys = append([]any{strings.ToLower(name)}, keys[1:]...)
			}
			return pathCode("this", append([]any{"meta", "headers"}, keys...)...), nil
		},
		"last_record": func(keys []any) (code, error) {
			of := last
			for _, key := range keys {
				of = memberCode(of, key)
			}
			return of, nil
		},
		"last_records": func(keys []any) (code, error) {
			if len(keys) > 0 && keys[0] == -1 {
				of := last
				for _, key := range keys[1:] {
					of = memberCode(of, key)
				}
				return of, nil
			}
			of := rows
			for _, key := range keys {
				of = memberCode(of, key)
			}
			return of, nil
		},
		"last_page_size":  func([]any) (code, error) { return size, nil },
		"next_page_token": func([]any) (code, error) { return unsupportedError("next_page_token in a strategy") },
	}
}

// plainText reports whether a key is a text without quotes.
func plainText(key any) bool {
	text, isText := key.(string)
	return isText && !strings.ContainsAny(text, `'"\`)
}

// linkAttribute returns an attribute of a link in the header Link, such as cursor="…"; "" if there is none.
func linkAttribute(relation, name string) code {
	link := "first(filter(split(this.meta.headers.link, ','), # contains 'rel=\"" + relation + "\"'))"
	return code{text: "split(split(" + link + ", '" + name + "=\"')[1], '\"')[0]", prec: precAtom, falsy: true, calm: true}
}

func (c *converter) cursorToken(s *step, t *token, strategy component, into *trace) error {
	roots := c.responseScope(s)
	text := expression.Text(strategy["cursor_value"])
	if strings.Contains(text, "next_page_token") { // such as the token before plus 1: a count of pages
		roots["next_page_token"] = func([]any) (code, error) {
			c := code{text: "_retry.page - 1", prec: precAdd, calm: true}
			return c, nil
		}
		if !countsPages.MatchString(oneLine(text)) {
			delete(roots, "next_page_token")
		}
	}
	scope := c.stepScope(s, strategy, into).withRoots(roots)
	parts, err := scope.textParts(text)
	if err != nil {
		return err
	}
	t.value = joinTexts(parts)
	if countsPages.MatchString(oneLine(text)) {
		t.value = pathCode("_retry", "page")
		t.value.falsy = false
	}
	t.when = t.value
	if len(parts) > 1 || t.value.texty && !t.value.path {
		t.when = constantCode(true)
	}
	if stop := expression.Text(strategy["stop_condition"]); stop != "" {
		condition, err := scope.translateExpression(stop)
		if err != nil {
			return err
		}
		t.when = andCode(negate(condition), t.when)
	}
	return nil
}

func (c *converter) countedToken(s *step, t *token, strategy component, into *trace) error {
	rows := callCode("len", s.rowsCode())
	rows.falsy = true
	t.size = strategy["page_size"]
	if n, isNumber := strategy.wholeNumber("page_size"); isNumber && n <= 0 { // which says nothing
		t.size = nil
	}
	if t.size == nil {
		t.when = compareCode(">", rows, constantCode(0))
	} else {
		value, err := c.stepScope(s, strategy, into).textParts(expression.Text(t.size))
		if err != nil {
			return err
		}
		size := joinTexts(value)
		if text, isText := size.value.(string); isText && number.MatchString(text) {
			size = constantCode(typedBody(text))
		}
		if !size.known && !size.whole {
			size.text, size.prec = "int("+size.text+")", precAtom
		}
		t.size = size.value
		if n, isNumber := size.value.(int); isNumber && n > testRows {
			size = c.sizeOf(n)
		}
		t.when = compareCode(">=", rows, size)
		if t.kind == "OffsetIncrement" {
			t.value = code{text: "_retry.page * " + size.operandText(precPipe), prec: precMultiply, calm: true}
		}
	}
	if s.where != nil {
		addNoteOf(c, s, "the rows of a page are counted before its filter, which Airbyte counts after it: pages do not end because of rows that are left out")
	}
	first := 0
	switch {
	case t.kind == "OffsetIncrement" && t.value.text == "":
		t.value = callCode("len", pathCode("pages"))
	case t.kind == "PageIncrement":
		first, _ = strategy.wholeNumber("start_from_page")
		t.value = pathCode("_retry", "page")
		if first != 0 {
			t.value = code{text: "_retry.page + " + expression.Text(first), prec: precAdd}
		}
	}
	if inject, _ := strategy["inject_on_first_request"].(bool); inject {
		t.first = first
	}
	return nil
}

// convertPaging converts the pagination: the policy for more pages, and page size and number of the first request.
func (c *converter) convertPaging(s *step, paginator component, t *token, requester component) {
	if paginator == nil {
		return
	}
	first := newInjection()
	if option := paginator.childAt("page_size_option"); t != nil && sameOption(option, paginator.childAt("page_token_option")) {
		s.addGap(atRetry, "DefaultPaginator", "the size of a page and the next page are both sent as %s: only the page is", option.text("field_name"))
	} else if option != nil {
		size := paginator.childAt("pagination_strategy")
		if value := c.translateAt(s, atRetry, size, "page_size", nil); value != nil {
			if text, isText := value.(string); isText {
				value = typedBody(text)
			}
			if n, isNumber := value.(int); isNumber && t != nil && t.size == n && n > testRows && t.kind != "CursorPagination" {
				value = node.Verbatim("{{ " + c.sizeOf(n).text + " }}")
			}
			c.injectValue(s, atRetry, option, value, first)
		}
	}
	if t == nil {
		s.addInjection(first)
		return
	}
	p := &paging{when: t.when, changes: newInjection(), token: t.value, size: t.size}
	if s.incremental != nil && s.incremental.feed {
		p.when = andCode(p.when, s.incremental.newerThanSlice(callCode("last", s.rowsCode())))
	}
	p.when = afterSuccess(p.when)
	value := node.Verbatim("{{ " + t.value.text + " }}")
	option := paginator.childAt("page_token_option")
	switch {
	case option == nil:
	case option.kind() == "RequestPath" || option.text("inject_into") == "path":
		p.url = value
	default:
		if t.first != nil {
			c.injectValue(s, atRetry, option, t.first, first)
		}
		c.injectValue(s, atRetry, option, value, p.changes)
	}
	s.addInjection(first)
	c.tokenInputs(s, p, requester, t.value)
	if ignored, _ := s.of.childAt("retriever")["ignore_stream_slicer_parameters_on_paginated_requests"].(bool); ignored {
		p.without = s.sliceParams()
	}
	for name := range p.changes.form { // forms change by args
		if s.args == nil {
			s.args = map[string]any{}
		}
		s.args[name] = s.form[name]
		if s.form == nil {
			s.form = map[string]any{}
		}
		s.form[name] = node.Verbatim("{{ args" + memberPath([]any{name}) + " }}")
	}
	s.setPaging(p)
}

// sameOption reports whether two options set the same part of requests.
func sameOption(a, b component) bool {
	return a.text("field_name") != "" && a.text("field_name") == b.text("field_name") && a.text("inject_into") == b.text("inject_into")
}

// secretAddress matches a template that reads a secret.
var secretAddress = regexp.MustCompile(`\{\{[^}]*\b` + secretsStep + `\.`)

// setPaging sets how further pages are requested. An address with a secret cannot be followed by one of the response, which would
// repeat the secret in the history.
func (s *step) setPaging(p *paging) {
	if p.url != nil && secretAddress.MatchString(fmt.Sprint(s.url)) {
		s.addGap(atRetry, "paginator", "the url has a secret, which the address of the next page would repeat in the history; only the first page is read")
		return
	}
	s.paging = p
}

// afterSuccess returns a condition that is false after failures.
func afterSuccess(when code) code {
	if when.falsy {
		return when
	}
	return andCode(code{text: "error is not defined", prec: precCompare, falsy: true, calm: true}, when)
}

// tokenInputs adds the parts of a request that read the page token: the next request must evaluate them again.
func (c *converter) tokenInputs(s *step, p *paging, requester component, token code) {
	roots := c.responseScope(s)
	roots["next_page_token"] = func(keys []any) (code, error) {
		if len(keys) == 1 && (keys[0] == "next_page_token" || keys[0] == "next_page_url") {
			return token, nil
		}
		if len(keys) == 0 {
			return constantCode(map[string]any{"next_page_token": true}), nil
		}
		return unsupportedError("a member of next_page_token")
	}
	for key, into := range map[string]map[string]any{
		"request_parameters": p.changes.params, "request_headers": p.changes.headers, "request_body_json": p.changes.body, "request_body_data": p.changes.form,
	} {
		fields, _ := requester[key].(map[string]any)
		reading := component{key: map[string]any{}, parametersKey: requester[parametersKey]}
		for name, value := range fields {
			if hasToken(value) {
				reading[key].(map[string]any)[name] = value // as it was made above
			}
		}
		maps.Copy(into, c.requestMap(s, reading, key, roots))
	}
	if jinja.HasTemplate(requester.text("path")) && hasToken(requester.text("path")) {
		p.url = c.requestURL(s, requester, roots)
	}
}

// sliceParams returns the names of the params for partitions and time slices.
func (s *step) sliceParams() (names []string) {
	var options []sliceOption
	if s.loop != nil {
		options = append(options, s.loop.options...)
	}
	if s.incremental != nil {
		options = append(options, s.incremental.options...)
	}
	for _, one := range options {
		if name := one.option.text("field_name"); one.option.text("inject_into") == "request_parameter" {
			names = append(names, name)
		}
	}
	return names
}
