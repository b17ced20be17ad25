package lowcode_test

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// request is the one for a page.
func (r *reader) request(stream component, one part, pager *pager, token any) request {
	retriever := stream.of("retriever")
	requester := retriever.of("requester")
	if kind := requester.kind("HttpRequester"); kind != "HttpRequester" {
		panic(unplayable("a requester of type " + kind))
	}
	more := r.withState(stream, one)
	more["next_page_token"] = tokenNames(token)
	in := r.in(requester, more)
	out := request{method: strings.ToUpper(requester.text("http_method")), query: url.Values{}, headers: map[string]string{}}
	if out.method == "" {
		out.method = "GET"
	}
	base := requester.text("url_base")
	if base == "" {
		base = requester.text("url")
	}
	path := ""
	if pager.inPath && token != nil {
		path = textOf(token)
	} else if requester.text("path") != "" {
		path = strings.TrimLeft(textOf(interpolate(requester.text("path"), in)), "/")
	}
	out.address(textOf(interpolate(base, in)), path)
	given := r.inputs(requester, in)
	if token == nil || requester["ignore_stream_slicer_parameters_on_paginated_requests"] != true && retriever["ignore_stream_slicer_parameters_on_paginated_requests"] != true {
		r.sliceOptions(stream, one, given)
	}
	pager.options(r, token, given)
	r.authenticate(requester.of("authenticator"), given)
	given.fill(&out)
	return out
}

// address sets the address from a base and a path, which may be an address of its own.
func (q *request) address(base, path string) {
	if path != "" {
		if !strings.HasSuffix(base, "/") {
			base += "/"
		}
		at, err := url.Parse(base)
		if err != nil {
			panic(unplayable("the address " + base))
		}
		next, err := at.Parse(path)
		if err != nil {
			panic(unplayable("the path " + path))
		}
		base = next.String()
	}
	at, err := url.Parse(base)
	if err != nil {
		panic(unplayable("the address " + base))
	}
	for name, values := range at.Query() {
		q.query[name] = append(q.query[name], values...)
	}
	at.RawQuery, at.Fragment = "", ""
	q.url = at.String()
}

// given are the parts of a request.
type given struct {
	params, headers, form, body map[string]any
	text                        string // body as it is
	json                        any    // body that is no map
}

// inputs are what the requester says of its requests.
func (r *reader) inputs(requester component, in names) *given {
	out := &given{params: texts(requester["request_parameters"], in), headers: texts(requester["request_headers"], in), form: map[string]any{}, body: map[string]any{}}
	if requester["request_body"] != nil {
		panic(unplayable("a request_body"))
	}
	switch body := requester["request_body_data"].(type) {
	case map[string]any:
		out.form = texts(body, in)
	case string:
		out.text = textOf(interpolate(body, in))
	}
	switch body := nested(requester["request_body_json"], in).(type) {
	case map[string]any:
		out.body = body
	case nil:
	default:
		out.json = body
	}
	return out
}

// texts are values that are sent as texts, or as lists of them. Those that are none are left out.
func texts(of any, in names) map[string]any {
	out := map[string]any{}
	fields, _ := of.(map[string]any)
	for name, value := range fields {
		text, isText := value.(string)
		if !isText {
			if value != nil {
				out[name] = plainJSON(value)
			}
			continue
		}
		rendered, undefinedName, err := render(text, in)
		if err != nil {
			panic(unplayable(err.Error()))
		}
		if undefinedName || rendered == "" {
			continue
		}
		literal, _ := literalOf(rendered)
		key, _, _ := render(name, in)
		switch literal := literal.(type) {
		case string:
			out[key] = literal
		case []any:
			out[key] = literal
		default:
			out[key] = rendered
		}
	}
	return out
}

// nested are values whose texts are templates, at every depth.
func nested(of any, in names) any {
	switch of := of.(type) {
	case string:
		return interpolate(of, in)
	case map[string]any:
		out := map[string]any{}
		for key, value := range of {
			if value = nested(value, in); value != nil {
				out[textOf(interpolate(key, in))] = value
			}
		}
		return out
	case []any:
		out := make([]any, len(of))
		for i, item := range of {
			out[i] = nested(item, in)
		}
		return out
	}
	return plainJSON(of)
}

// sliceOptions are what routers and the cursor put into requests.
func (r *reader) sliceOptions(stream component, one part, into *given) {
	for _, router := range stream.of("retriever").list("partition_router") {
		if option := router.of("request_option"); option != nil {
			r.inject(option, one.fields[textOf(interpolate(router.text("cursor_field"), r.in(router, nil)))], into)
		}
		for _, parent := range router.list("parent_stream_configs") {
			value := one.fields[textOf(interpolate(parent.text("partition_field"), r.in(parent, nil)))]
			if option := parent.of("request_option"); option != nil && isTrue(value) {
				r.inject(option, value, into)
			}
		}
	}
	cursor := stream.of("incremental_sync")
	for _, end := range []struct{ option, field, usual string }{{"start_time_option", "partition_field_start", "start_time"}, {"end_time_option", "partition_field_end", "end_time"}} {
		if option := cursor.of(end.option); option != nil {
			r.inject(option, one.fields[fieldOf(cursor, end.field, end.usual)], into)
		}
	}
}

func fieldOf(cursor component, key, usual string) string {
	if name := cursor.text(key); name != "" {
		return name
	}
	return usual
}

// inject puts a value where an option says.
func (r *reader) inject(option component, value any, into *given) {
	place := map[string]map[string]any{"request_parameter": into.params, "header": into.headers, "body_data": into.form, "body_json": into.body}[option.text("inject_into")]
	if place == nil {
		panic(unplayable("inject_into " + option.text("inject_into")))
	}
	if path, is := option["field_path"].([]any); is && option.text("field_name") == "" {
		setAt(place, path, value)
		return
	}
	if option.text("field_name") == "" {
		return
	}
	place[textOf(interpolate(option.text("field_name"), r.in(option, nil)))] = value
}

// fill completes a request.
func (g *given) fill(out *request) {
	for name, value := range g.params {
		if list, is := value.([]any); is {
			out.query.Del(name)
			for _, item := range list {
				out.query.Add(name, textOf(item))
			}
			continue
		}
		if value != nil {
			if had := out.query[name]; len(had) == 1 && had[0] == textOf(value) {
				continue // it is in the address already
			}
			out.query.Add(name, textOf(value))
		}
	}
	for name, value := range g.headers {
		out.headers[strings.ToLower(name)] = textOf(value)
	}
	form := url.Values{}
	for name, value := range g.form {
		for _, item := range append([]any(nil), listOfOne(value)...) {
			form.Add(name, textOf(item))
		}
	}
	if out.method == "GET" && len(g.body)+len(form)+len(g.text) > 0 {
		panic(unplayable("a GET with a body, which some versions of the CDK send and others do not"))
	}
	out.form = form.Encode() + g.text
	if len(g.body) > 0 {
		out.body = g.body
	} else {
		out.body = g.json
	}
}

func listOfOne(of any) []any {
	if list, is := of.([]any); is {
		return list
	}
	return []any{of}
}

// authenticate adds what the authenticator does.
func (r *reader) authenticate(of component, into *given) {
	text := func(key string) string { return textOf(known(interpolate(of.text(key), r.in(of, nil)))) }
	switch kind := of.kind("NoAuth"); kind {
	case "NoAuth":
	case "BearerAuthenticator":
		into.headers["Authorization"] = "Bearer " + text("api_token")
	case "BasicHttpAuthenticator":
		password := ""
		if of.text("password") != "" {
			password = text("password")
		}
		if password == "None" {
			password = ""
		}
		into.headers["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(text("username")+":"+password))
	case "ApiKeyAuthenticator":
		if option := of.of("inject_into"); option != nil {
			r.inject(option, text("api_token"), into)
		} else {
			into.headers[text("header")] = text("api_token")
		}
	case "OAuthAuthenticator":
		into.headers["Authorization"] = "Bearer " + accessToken
	case "SelectiveAuthenticator":
		var path []string
		for _, key := range listOf(of["authenticator_selection_path"]) {
			path = append(path, textOf(key))
		}
		r.authenticate(of.of("authenticators").of(textOf(known(valueAt(r.config, path)))), into)
	default:
		panic(unplayable("an authenticator of type " + kind))
	}
}

// accessToken is what the API gives for any login.
const accessToken = "ACCESS"
