package lowcode_test

// pager says which page comes next.
type pager struct {
	of       component // the paginator
	strategy component
	kind     string
	inPath   bool
	size     int // of pages, 0 for one that is not told
}

func (r *reader) pagerOf(retriever component) *pager {
	of := retriever.of("paginator")
	switch kind := of.kind("NoPagination"); kind {
	case "NoPagination":
		return &pager{kind: kind}
	case "DefaultPaginator":
	default:
		panic(unplayable("a paginator of type " + kind))
	}
	p := &pager{of: of, strategy: of.of("pagination_strategy")}
	p.kind = p.strategy.kind("")
	p.inPath = of.of("page_token_option").kind("RequestOption") == "RequestPath"
	switch size := p.strategy["page_size"].(type) {
	case int:
		p.size = size
	case string:
		p.size, _ = interpolate(size, r.in(p.strategy, nil)).(int)
	}
	switch p.kind {
	case "PageIncrement", "OffsetIncrement", "CursorPagination":
		return p
	}
	panic(unplayable("a strategy of type " + p.kind))
}

// first is the token of the first page, nil for none.
func (p *pager) first() any {
	if p.strategy["inject_on_first_request"] != true {
		return nil
	}
	switch p.kind {
	case "PageIncrement":
		return p.start()
	case "OffsetIncrement":
		return 0
	}
	return nil
}

// start is the number of the first page.
func (p *pager) start() int {
	n, _ := p.strategy["start_from_page"].(int)
	return n
}

// next is the token of the next page, nil if there is none. The rows of a page are counted before its filter.
func (p *pager) next(r *reader, found answer, rows int, last, token any) any {
	ended := p.size > 0 && rows < p.size || rows == 0
	switch p.kind {
	case "PageIncrement":
		if ended {
			return nil
		}
		if n, is := token.(int); is {
			return n + 1
		}
		return p.start() + 1
	case "OffsetIncrement":
		if ended {
			return nil
		}
		n, _ := token.(int)
		return n + rows
	case "CursorPagination":
		return p.cursorToken(r, found.body, found.headerNames(), rows, last)
	}
	return nil
}

// cursorToken is what the templates of a cursor say.
func (p *pager) cursorToken(r *reader, body any, headers map[string]any, rows int, last any) any {
	in := r.in(p.strategy, names{"response": body, "headers": headers, "last_record": last, "last_page_size": rows, "last_records": last})
	if stop := p.strategy["stop_condition"]; stop != nil {
		if ends, is := stop.(bool); is && ends {
			return nil
		}
		if text, is := stop.(string); is && holds(text, in) {
			return nil
		}
	}
	token := interpolate(textOf(p.strategy["cursor_value"]), in)
	if !isTrue(token) {
		return nil
	}
	return token
}

// options are what the paginator puts into a request.
func (p *pager) options(r *reader, token any, into *given) {
	if option := p.of.of("page_token_option"); option != nil && token != nil && !p.inPath {
		r.inject(option, token, into)
	}
	if option := p.of.of("page_size_option"); option != nil && p.size > 0 {
		r.inject(option, p.size, into)
	}
}
