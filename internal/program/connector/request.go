package connector

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"reprise/internal/program/connector/jinja"
	"reprise/internal/program/node"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// convertRequest converts the request of a step, and its pagination.
func (c *converter) convertRequest(s *step, retriever, requester component) {
	s.setMethod(requester.text("http_method"))
	token, paginator := c.tokenOf(s, retriever)
	login := c.loginOf(s, requester)
	requester = login.moveOutOfURL(c, s, requester)
	s.url = c.requestURL(s, requester, nothing)
	c.convertInputs(s, requester, login)
	c.sliceOptions(s)
	c.convertDecoder(s, requester, retriever)
	c.convertBudget(s)
	c.convertPaging(s, paginator, token, requester)
	s.auth = c.nameConnection(s, login)
}

// httpMethods are those of tool http.
var httpMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// setMethod sets the method of requests, "" for GET, which is the default.
func (s *step) setMethod(text string) {
	method := strings.ToUpper(text)
	if method != "" && !slices.Contains(httpMethods, method) {
		s.addGap(atRequest, "method", "%s is no method of HTTP; GET is used", oneLine(text))
		method = ""
	}
	if s.method = method; method == http.MethodGet {
		s.method = ""
	}
}

// nothing is the scope of the first request, which has no page token.
var nothing = scope{"next_page_token": func([]any) (code, error) { return constantCode(nil), nil }}

// requestURL returns the URL of requests. Secrets in its query are left to the connection.
func (c *converter) requestURL(s *step, requester component, roots scope) any {
	base, path := requester.text("url_base"), requester.text("path")
	if whole := requester.text("url"); whole != "" && base == "" {
		base = whole
	}
	var into trace
	scope := c.stepScope(s, requester, &into).withRoots(roots)
	parts, err := scope.textParts(base)
	if err != nil {
		s.addGap(atRequest, "url_base", "%s: %v", base, err)
		parts = []code{constantCode("https://api.example.com")}
	}
	if len(into.secret) > 0 {
		s.addGap(atRequest, "url_base", "it depends on a secret: %s", oneLine(base))
		parts, into = []code{constantCode("https://api.example.com")}, trace{}
	}
	s.base = ""
	if text, isText := parts[0].value.(string); isText && len(parts) == 1 {
		s.base = strings.TrimRight(text, "/")
	}
	if path != "" {
		behind, err := scope.textParts(path)
		if err != nil {
			s.addGap(atRequest, "path", "%s: %v", path, err)
			behind = nil
		}
		if len(behind) > 0 && strings.HasPrefix(expression.Text(behind[0].value), "http") { // a whole address takes the place of the base
			s.base = ""
			c.read.mergeTrace(into)
			return templateValue(flattenTexts(behind))
		}
		parts = append(trimSlash(parts, true), append([]code{constantCode("/")}, rawPaths(trimSlash(behind, false))...)...)
	}
	c.read.mergeTrace(into)
	url := templateValue(flattenTexts(parts))
	if computedParam.MatchString(fmt.Sprint(url)) {
		s.addGap(atRequest, "path", "an expression makes a param with its name, and a value in a url is escaped here: move it to params")
	}
	return url
}

// pathName and addressName match an expression whose last name says that its value has several parts of a path, or is a whole
// address.
var (
	pathName    = regexp.MustCompile(`(?i)(^|[._])(full_?name|path|uri|url|href|repository)$`)
	addressName = regexp.MustCompile(`(?i)(^|[._])(uri|url|href|link)$`)
)

// rawPaths returns the parts of a path in which values with several parts keep their slashes, as in the peers.
func rawPaths(parts []code) []code {
	parts = slices.Clone(parts)
	for i, part := range parts {
		if !part.known && part.prec == precAtom && pathName.MatchString(part.text) {
			parts[i].text, parts[i].prec = part.text+" | raw", precPipe
		}
	}
	return parts
}

// computedParam matches a query of which an expression makes the name of a param, or nothing.
var computedParam = regexp.MustCompile(`\?(|[^{]*&|.*\}\}&)\{\{`)

// trimSlash removes a slash from the end of an expression, or from its beginning.
func trimSlash(parts []code, end bool) []code {
	parts = slices.Clone(parts)
	at := 0
	if end {
		at = len(parts) - 1
	}
	if len(parts) == 0 {
		return parts
	}
	if text, isText := parts[at].value.(string); isText && parts[at].known {
		if end {
			parts[at] = constantCode(strings.TrimRight(text, "/"))
		} else {
			parts[at] = constantCode(strings.TrimLeft(text, "/"))
		}
	} else if end && constantEnds.MatchString(parts[at].text) && !strings.Contains(parts[at].text, "(") {
		parts[at].text = constantEnds.ReplaceAllString(parts[at].text, "'$1")
	}
	return parts
}

// constantEnds matches the slash at the end of a constant text, of several from which an expression chooses.
var constantEnds = regexp.MustCompile(`/+'( |$)`)

// flattenTexts joins adjacent constant texts.
func flattenTexts(parts []code) (out []code) {
	for _, part := range parts {
		if n := len(out); n > 0 && part.known && out[n-1].known {
			out[n-1] = constantCode(expression.Text(out[n-1].value) + expression.Text(part.value))
			continue
		}
		out = append(out, part)
	}
	return out
}

// convertInputs converts the params, headers and body of the first request.
func (c *converter) convertInputs(s *step, requester component, login *login) {
	s.params = c.secretsOut(s, requester, "request_parameters", login.addQuery)
	s.headers = c.secretsOut(s, requester, "request_headers", login.addHeader)
	if body := c.requestMap(s, requester, "request_body_json", nothing); len(body) > 0 {
		s.body = typedBody(body)
	} else if text := requester.text("request_body_json"); text != "" {
		s.body = c.translateAt(s, atRequest, requester, "request_body_json", nothing)
		s.headers["Content-Type"] = "application/json"
	}
	if form := c.requestMap(s, requester, "request_body_data", nothing); len(form) > 0 {
		s.form = form
	} else if requester.text("request_body_data") != "" {
		s.body = c.translateAt(s, atRequest, requester, "request_body_data", nothing)
	}
	if requester["request_body"] != nil {
		s.addGap(atRequest, "request_body", "of type %s", requester.childAt("request_body").kind())
	}
	if s.body != nil && s.method == "" {
		s.method = "GET"
	}
}

// requestMap returns a map of the request without nil and empty values, as the CDK does.
func (c *converter) requestMap(s *step, of component, key string, roots scope) map[string]any {
	out := map[string]any{}
	fields, isMap := of[key].(map[string]any)
	if !isMap {
		if of[key] != nil && of[key] != "" && key != "request_body_json" && key != "request_body_data" {
			s.addGap(atRequest, key, "%v is no map", of[key])
		}
		return out
	}
	for _, name := range playbook.SortedKeys(fields) {
		var into trace
		scope := c.stepScope(s, of, &into).withRoots(roots)
		translated, err := scope.translateValue(literalOfTemplates(fields[name], key))
		named, nameErr := scope.translateValue(name)
		if err != nil || nameErr != nil {
			s.addGap(atRequest, key, "%s: %s: %v", name, oneLine(fmt.Sprint(fields[name])), firstError(err, nameErr))
			continue
		}
		if text, isText := translated.(string); isText && key == "request_parameters" {
			if list, is := literalOf(text); is && isList(list) { // which is sent as several params
				translated = list
			}
		}
		if text, isText := named.(string); isText && translated != nil && translated != "" {
			c.read.mergeTrace(into)
			out[text] = asRendered(translated, key != "request_body_json")
		}
	}
	return out
}

// asRendered is a value of a request as the CDK renders it: maps have no members that are nil, the time is a text of
// Python; outside of bodies so are booleans, and texts that may be empty are left out then.
func asRendered(of any, leftOut bool) any {
	switch of := of.(type) {
	case bool:
		if leftOut {
			return strings.ToUpper(strconv.FormatBool(of)[:1]) + strconv.FormatBool(of)[1:]
		}
	case map[string]any:
		out := map[string]any{}
		for key, value := range of {
			if value != nil {
				out[key] = asRendered(value, leftOut)
			}
		}
		return out
	case node.Verbatim:
		text := string(of)
		switch {
		case text == "{{ "+nowCode().text+" }}":
			return node.Verbatim("{{ format_time(" + nowCode().text + ", '2006-01-02 15:04:05.000000-07:00') }}")
		case !leftOut || strings.Count(text, "{{") > 1 || !strings.HasPrefix(text, "{{ "):
		case strings.HasPrefix(text, "{{ join("):
			return node.Verbatim(strings.TrimSuffix(text, " }}") + " or nil }}")
		case strings.HasSuffix(text, " : '' }}"):
			return node.Verbatim(strings.TrimSuffix(text, "'' }}") + "nil }}")
		case strings.HasSuffix(text, " else '' }}"):
			return node.Verbatim(strings.TrimSuffix(text, "'' }}") + "nil }}")
		}
	}
	return of
}

func isList(of any) bool {
	_, is := of.([]any)
	return is
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// secretsOut returns a map of the request without the entries that contain secrets. The connection sends those.
func (c *converter) secretsOut(s *step, of component, key string, send func(name, form string)) map[string]any {
	fields, isMap := of[key].(map[string]any)
	if !isMap {
		return c.requestMap(s, of, key, nothing)
	}
	rest := component{key: map[string]any{}, parametersKey: of[parametersKey]}
	for _, name := range playbook.SortedKeys(fields) {
		text, _ := fields[name].(string)
		if form, secret := c.formOf(s, of, text); secret {
			send(name, form)
			continue
		}
		rest[key].(map[string]any)[name] = fields[name] // as it was made above
	}
	return c.requestMap(s, rest, key, nothing)
}

// number matches the numbers that Python accepts.
var number = regexp.MustCompile(`^-?\d{1,15}(\.\d+)?$`)

// typedBody returns a body in which texts are evaluated as Python does, as the CDK sends them.
func typedBody(of any) any {
	switch of := of.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range of {
			out[key] = typedBody(value)
		}
		return out
	case []any:
		out := make([]any, len(of))
		for i, value := range of {
			out[i] = typedBody(value)
		}
		return out
	case string:
		if value, is := literalOf(of); is {
			return value
		}
	}
	return of
}

// injectValue puts a value where a request option says: in the first request or, with into, in the following ones.
func (c *converter) injectValue(s *step, at string, option component, value any, into *injection) {
	name := c.translateAt(s, at, option, "field_name", nil)
	text, isText := name.(string)
	if !isText {
		if path, isList := option["field_path"].([]any); isList && len(path) > 0 {
			nested := value
			for i := len(path) - 1; i > 0; i-- {
				nested = map[string]any{expression.Text(path[i]): nested}
			}
			text, value = expression.Text(path[0]), nested
		} else {
			s.addGap(at, "RequestOption", "without a constant field_name")
			return
		}
	}
	if text == "" { // which sends nothing
		return
	}
	switch option.text("inject_into") {
	case "request_parameter":
		into.params[text] = value
	case "header":
		into.headers[text] = value
	case "body_json":
		into.body[text] = value
	case "body_data":
		into.form[text] = value
	default:
		s.addGap(at, "RequestOption", "inject_into %s", option.text("inject_into"))
	}
}

// injection is what options add to a request.
type injection struct{ params, headers, body, form map[string]any }

func newInjection() *injection {
	return &injection{params: map[string]any{}, headers: map[string]any{}, body: map[string]any{}, form: map[string]any{}}
}

// addInjection merges an injection into the first request.
func (s *step) addInjection(of *injection) {
	maps.Copy(s.params, of.params)
	maps.Copy(s.headers, of.headers)
	if len(of.form) > 0 {
		if s.form == nil {
			s.form = map[string]any{}
		}
		maps.Copy(s.form, of.form)
	}
	if len(of.body) > 0 {
		body, isMap := s.body.(map[string]any)
		if !isMap {
			body = map[string]any{}
		}
		maps.Copy(body, of.body)
		s.body = body
	}
}

// sliceOptions adds the values of partitions and time slices to each request.
func (c *converter) sliceOptions(s *step) {
	all := newInjection()
	if s.loop != nil {
		for _, one := range s.loop.options {
			c.injectValue(s, atLoop, one.option, node.Verbatim("{{ "+one.value.text+" }}"), all)
		}
	}
	if s.incremental != nil {
		for _, one := range s.incremental.options {
			c.injectValue(s, atIncremental, one.option, node.Verbatim("{{ "+one.value.text+" }}"), all)
		}
	}
	s.addInjection(all)
}

// convertDecoder converts how responses are decoded.
func (c *converter) convertDecoder(s *step, requester, retriever component) {
	decoder := retriever.childAt("decoder")
	if decoder == nil {
		decoder = retriever.childAt("record_selector").childAt("extractor").childAt("decoder")
	}
	if decoder == nil {
		decoder = requester.childAt("decoder")
	}
	switch kind := decoder.kind(); kind {
	case "", "JsonDecoder":
	case "JsonlDecoder":
		s.format = "jsonl"
	case "CsvDecoder":
		s.format = "csv"
	case "XmlDecoder":
		s.format = "xml"
	case "Custom":
		s.addGap(atRequest, customName(decoder, "CustomDecoder"), "responses are decoded by their content type")
	default:
		s.addGap(atRequest, kind, "")
	}
}

// convertBudget converts the limits on requests to the API.
func (c *converter) convertBudget(s *step) {
	for _, policy := range c.manifest.childAt("api_budget").componentList("policies") {
		switch policy.kind() {
		case "FixedWindowCallRatePolicy":
			c.addLimit(s, policy["call_limit"], policy["period"])
		case "MovingWindowCallRatePolicy":
			for _, rate := range policy.componentList("rates") {
				c.addLimit(s, rate["limit"], rate["interval"])
			}
		case "UnlimitedCallRatePolicy":
		default:
			s.addGap(atRequest, policy.kind(), "")
		}
		if len(policy.componentList("matchers")) > 0 {
			c.addNote("the limit of %s is for some requests alone: here it is for all of their host", policy.kind())
		}
	}
}

// addLimit adds a rate limit; of several it keeps the strictest.
func (c *converter) addLimit(s *step, requests, period any) {
	n, isNumber := requests.(int)
	amount, err := amountOf(expression.Text(period))
	if !isNumber || err != nil || amount == "" {
		s.addGap(atRequest, "HTTPAPIBudget", "a limit of %v in %v", requests, period)
		return
	}
	if s.rateLimit != nil && s.rateLimit.value != n {
		s.addGap(atRequest, "HTTPAPIBudget", "a second limit of %v in %v", requests, period)
		return
	}
	if days, found := strings.CutSuffix(amount, "d"); found {
		if n, err := strconv.Atoi(days); err == nil {
			amount = strconv.Itoa(n*24) + "h"
		}
	}
	s.rateLimit = &pair{name: amount, value: n}
}

// hasToken reports whether a value of a request reads the page token.
func hasToken(of any) bool {
	switch of := of.(type) {
	case string:
		return jinja.HasTemplate(of) && strings.Contains(of, "next_page_token")
	case map[string]any:
		for _, value := range of {
			if hasToken(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(of, hasToken)
	}
	return false
}
