package lowcode_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// paths are the paths with constant keys that an operand reads below a name.
func (o *operand) paths(name string) (out [][]string) {
	if o == nil {
		return nil
	}
	if path, is := o.pathBelow(name); is {
		if len(path) > 0 {
			out = append(out, path)
		}
		return out
	}
	for _, part := range o.parts {
		out = append(out, part.paths(name)...)
	}
	return out
}

// pathBelow is the path that an operand reads below a name.
func (o *operand) pathBelow(name string) ([]string, bool) {
	if o == nil {
		return nil, false
	}
	switch {
	case o.kind == "name":
		return nil, o.text == name
	case o.kind == "attr":
		before, is := o.parts[0].pathBelow(name)
		return append(slices.Clone(before), o.text), is
	case o.kind == "item" && o.parts[1].kind == "lit":
		before, is := o.parts[0].pathBelow(name)
		return append(slices.Clone(before), textOf(o.parts[1].value)), is
	case o.kind == "call" && o.parts[0].kind == "attr" && o.parts[0].text == "get" && len(o.parts) > 1 && o.parts[1].kind == "lit":
		before, is := o.parts[0].parts[0].pathBelow(name)
		return append(slices.Clone(before), textOf(o.parts[1].value)), is
	case o.kind == "bin" && o.text == "or" && len(o.parts[1].parts) == 0: // (a or {}).b
		return o.parts[0].pathBelow(name)
	case o.kind == "call" && o.parts[0].kind == "attr":
		return o.parts[0].parts[0].pathBelow(name)
	}
	return nil, false
}

// pathsOf are the distinct paths that templates read below a name.
func pathsOf(name string, templates ...any) (out [][]string) {
	for _, one := range templates {
		text, is := one.(string)
		if !is {
			continue
		}
		for _, path := range parseTemplate(text).paths(name) {
			if !slices.ContainsFunc(out, func(known []string) bool { return slices.Equal(known, path) }) {
				out = append(out, path)
			}
		}
	}
	return out
}

var numbers = regexp.MustCompile(`\d+`)

// cursorPage is a page whose templates say that there is another one, or that there is none.
func (a *api) cursorPage(r *reader, stream component, one part, pager *pager, asked request, page, total int) answer {
	templates := []any{pager.strategy["cursor_value"], pager.strategy["stop_condition"]}
	rowsAt := r.fieldPath(stream.of("retriever").of("record_selector").of("extractor"))
	var paths [][]string
	for _, path := range pathsOf("response", templates...) {
		if n := min(len(path), len(rowsAt)); n == 0 || !slices.Equal(path[:n], rowsAt[:n]) {
			paths = append(paths, path)
		}
	}
	counts := []int{3, pager.size}
	if page >= total {
		counts = []int{2, 0}
	}
	for _, n := range numbers.FindAllString(fmt.Sprint(templates...), -1) {
		if n, _ := strconv.Atoi(n); n > 0 && n <= 1000 {
			counts = append(counts, n)
		}
	}
	for _, n := range counts {
		rows := a.rows(r, stream, one, page, n)
		base := a.answerOf(r, stream, rows)
		tries := 0
		if found, ok := a.search(r, pager, base, asked, paths, page, total, rows, &tries); ok {
			return found
		}
	}
	panic(unplayable(fmt.Sprintf("pages of the cursor %v", templates)))
}

// search finds values for the paths so that there is another page, or none.
func (a *api) search(r *reader, pager *pager, base answer, asked request, paths [][]string, page, total int, rows []any, tries *int) (answer, bool) {
	if len(paths) > 0 {
		for _, value := range a.candidates(paths[0], asked, page, total) {
			body, is := copyOf(base.body).(map[string]any)
			if !is {
				if base.body != nil && len(listOf(base.body)) > 0 {
					return answer{}, false // rows at the top have nothing beside them
				}
				body = map[string]any{}
			}
			if _, none := value.(undefined); !none && !set(body, paths[0], value) {
				continue
			}
			next := base
			next.body = body
			if found, ok := a.search(r, pager, next, asked, paths[1:], page, total, rows, tries); ok || *tries > 4000 {
				return found, ok
			}
		}
		return answer{}, false
	}
	for _, link := range []bool{false, true} {
		*tries++
		next := base
		if page < total && link {
			next.headers = maps.Clone(base.headers)
			next.headers["Link"] = "<" + a.nextAddress(asked, page) + `>; rel="next"; results="true"; cursor="` + fmt.Sprintf(`t%dp%d"`, a.number, page+1)
		}
		if a.fits(r, pager, next, page < total, rows) {
			return next, true
		}
	}
	return answer{}, false
}

// set sets a value at a path, and reports whether there is room for it.
func set(of map[string]any, path []string, value any) bool {
	for _, key := range path[:len(path)-1] {
		below, has := of[key]
		if !has {
			below = map[string]any{}
			of[key] = below
		}
		next, is := below.(map[string]any)
		if !is {
			return false
		}
		of = next
	}
	of[path[len(path)-1]] = value
	return true
}

// fits reports whether a page says what it should of those behind it.
func (a *api) fits(r *reader, pager *pager, found answer, more bool, rows []any) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	var last any
	if len(rows) > 0 {
		last = rows[len(rows)-1]
	}
	token := pager.cursorToken(r, found.body, found.headerNames(), len(rows), last)
	if !more {
		return token == nil
	}
	text := textOf(token)
	if token == nil || pager.inPath != (strings.HasPrefix(text, "http") || strings.HasPrefix(text, "/")) && pager.inPath {
		return false
	}
	if !pager.inPath && strings.HasPrefix(text, "http") || text == "True" || a.tokens[text] {
		return false
	}
	a.tokens[text] = true
	return true
}

// nextAddress is an address of a next page.
func (a *api) nextAddress(asked request, page int) string {
	query := asked.query.Encode()
	if query != "" {
		query += "&"
	}
	return asked.url + "?" + query + fmt.Sprintf("after=t%dp%d", a.number, page+1)
}

// candidates are values that a member of a page may have, the likely ones first.
func (a *api) candidates(path []string, asked request, page, total int) (out []any) {
	name := strings.ToLower(strings.Join(path, "."))
	token := fmt.Sprintf("t%dp%d", a.number, page+1)
	address := a.nextAddress(asked, page)
	is := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) })
	}
	if page >= total {
		if is("total", "count", "pages") {
			out = append(out, total)
		}
		if is("page", "current") && !is("next") {
			out = append(out, page)
		}
		if a.draw(2, "absent", name, asked.url) == 0 {
			out = append(out, undefined{})
		}
		return append(out, nil, false, "", undefined{}, 0, page, total, true)
	}
	switch {
	case is("has", "more"):
		out = append(out, true)
	case is("total", "count", "pages"):
		out = append(out, total, 1000)
	case is("url", "link", "href", "uri"):
		out = append(out, address)
	case is("page", "current") && !is("next", "token", "cursor"):
		out = append(out, page)
	}
	return append(out, token, address, page+1, page, true, 1000+page, false, undefined{}, nil, 1000, asked.url[len(a.address):]+"?after="+token)
}
