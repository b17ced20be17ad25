package connector

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"reprise/internal/program/connector/pyliteral"
	"reprise/internal/program/node"
	"reprise/internal/program/scaffold"
	"reprise/interpreter/credential"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// stepOf returns the step that reads a resource, after that of its parent.
func (r *restAPI) stepOf(of *dltResource) *step {
	if of.open {
		return of.step
	}
	of.open = true
	table := scaffold.NameOf(of.of.text("table_name"), scaffold.NameOf(of.name, "rows"))
	s := &step{stream: of.name, table: table, gaps: map[string][]Gap{}, added: map[string]addedField{}, params: map[string]any{}, headers: map[string]any{}}
	s.name = r.unusedName(table, "read_"+table, table+"_rows")
	of.step = s
	if value := of.of["table_name"]; value != nil && value != "" && of.of.text("table_name") == "" {
		s.addGap(atSink, "table_name", "%s: the table is %s", kindOf(value), table)
	}
	r.convertParent(of)
	r.convertIncremental(of)
	r.convertSelectorPath(of)
	r.convertFilters(of)
	login := r.convertEndpoint(of)
	r.convertActions(of)
	r.convertPaginator(of)
	s.auth = r.nameConnection(s, login)
	r.convertSink(of)
	r.noteUnknown(s, atRequest, of.endpoint, "path", "method", "params", "json", "data", "headers", "auth", "paginator", "data_selector", "response_actions", "incremental")
	r.list = append(r.list, s)
	return s
}

// placeholders matches what str.format of Python replaces.
var placeholders = regexp.MustCompile(`\{\{|\}\}|\{[^{}]*\}`)

// parentField matches a placeholder of a field of the parent.
var parentField = regexp.MustCompile(`\{resources\.([^.{}]+)\.([^{}]+)\}`)

// convertParent converts the resource whose rows the requests need to a loop over them.
func (r *restAPI) convertParent(of *dltResource) {
	s := of.step
	var parents []string
	var paths []string
	add := func(parent, path string) {
		if !slices.Contains(parents, parent) {
			parents = append(parents, parent)
		}
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	for _, text := range textsOf([]any{of.endpoint["path"], of.endpoint["params"], of.endpoint["json"], of.endpoint["data"], of.endpoint["headers"]}) {
		for _, found := range parentField.FindAllStringSubmatch(text, -1) {
			add(found[1], found[2])
		}
	}
	for _, name := range playbook.SortedKeys(of.params) {
		if param := component(of.params).childAt(name); param.kind() == "resolve" {
			add(param.text("resource"), param.text("field"))
		}
	}
	included, _ := of.of["include_from_parent"].([]any)
	if len(parents) == 0 {
		if len(included) > 0 {
			s.addGap(atSink, "include_from_parent", "no request needs a parent")
		}
		return
	}
	parent := r.findResource(parents[0])
	switch {
	case len(parents) > 1:
		s.addGap(atLoop, "resources", "several parents: %s", strings.Join(parents, ", "))
	case parent == nil:
		s.addGap(atLoop, "resources", "there is no resource %s whose rows can be read; the request is made once", parents[0])
		return
	case parent.open && !slices.Contains(r.list, parent.step):
		s.addGap(atLoop, "resources", "%s needs the rows of this one; the request is made once", parents[0])
		return
	}
	for _, one := range included {
		paths = append(paths, expression.Text(one))
	}
	r.loopOver(of, parent, paths)
	for _, one := range included {
		name := "_" + parent.name + "_" + expression.Text(one)
		of.included[name] = field{path: []any{expression.Text(one)}, name: scaffold.NameOf(expression.Text(one), "field")}
		s.fields = append(s.fields, pair{name, node.Verbatim("{{ " + s.loop.memberText(expression.Text(one)) + " }}")})
	}
}

// textsOf returns all texts in a value.
func textsOf(of any) (texts []string) {
	switch of := of.(type) {
	case string:
		return []string{of}
	case map[string]any:
		for _, key := range playbook.SortedKeys(of) {
			texts = append(append(texts, key), textsOf(of[key])...)
		}
	case []any:
		for _, one := range of {
			texts = append(texts, textsOf(one)...)
		}
	case *pyliteral.FString:
		return textsOf(of.Parts)
	}
	return texts
}

// loopOver sets the loop over fields of the parent's rows.
func (r *restAPI) loopOver(of, parent *dltResource, paths []string) {
	s, from := of.step, r.stepOf(parent)
	from.read = true
	l := &loop{}
	outer := false // an element of the parent's own loop is needed
	var values []string
	for _, path := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		keys, err := jsonPath(path)
		if err != nil {
			s.addGap(atLoop, "resources", "the field %s of %s: %v", path, parent.name, err)
			continue
		}
		value := "#" + memberPath(keys)
		if _, has := parent.included[path]; has {
			outer = true
			value = "outer"
			if from.loop.nested {
				value += memberPath([]any{parent.included[path].name})
			}
		} else {
			from.needed = append(from.needed, strings.Join(textKeys(keys), "/"))
		}
		l.fields, values = append(l.fields, scaffold.NameOf(path, "field")), append(values, value)
		l.paths = append(l.paths, path)
	}
	if len(values) == 0 {
		return
	}
	l.nested = len(values) > 1
	element := values[0]
	if l.nested {
		for i := range values {
			values[i] = quoteText(l.fields[i]) + ": " + values[i]
		}
		element = "{" + strings.Join(values, ", ") + "}"
	}
	l.list = parentList(from, element, outer)
	l.collection = node.Verbatim("{{ " + l.list + " }}")
	l.element = r.elementName(strings.TrimSuffix(from.table, "s")+"_"+l.fields[0], "item")
	if l.nested {
		l.element = r.elementName(strings.TrimSuffix(from.table, "s"), "item")
	}
	s.loop = l
}

// parentList returns the list of a loop over rows of a parent. outer says that an element needs that of the parent's own
// loop.
func parentList(from *step, element string, outer bool) string {
	rows := from.name
	switch {
	case outer:
		return "let all = " + from.loop.list + "; flatten(map(" + from.name + ".results, let outer = all[#index]; map(# or [], " + element + ")))"
	case from.loop != nil:
		rows = "filter(flatten(" + from.name + ".results), # != nil)" // an iteration that failed has none
	case len(from.path) == 0:
		rows = "flatten([" + from.name + "])" // one row may be the whole response
	}
	return "map(" + rows + ", " + shortMember(element) + ")"
}

// shortMember returns a member of # as people write it.
func shortMember(element string) string {
	if strings.HasPrefix(element, "#.") {
		return element[1:]
	}
	return element
}

// memberText returns a field of the parent's row in the element, as an expression.
func (l *loop) memberText(path string) string {
	i := slices.Index(l.paths, path)
	switch {
	case i < 0:
		return ""
	case !l.nested:
		return l.element
	}
	return l.element + memberPath([]any{l.fields[i]})
}

// placeholderCode returns what a placeholder stands for.
func (r *restAPI) placeholderCode(of *dltResource, name string) (code, error) {
	s := of.step
	if parts := strings.SplitN(name, ".", 3); len(parts) == 3 && parts[0] == "resources" {
		return loopField(s, parts[2])
	}
	switch name {
	case "incremental.start_value", "incremental.last_value", "incremental.initial_value":
		if of.start != nil {
			return *of.start, nil
		}
		return unsupportedError("{%s}", name)
	case "incremental.end_value":
		if of.end != nil {
			return *of.end, nil
		}
		return unsupportedError("{%s}", name)
	}
	value, has := of.params[name]
	if !has {
		return unsupportedError("{%s}, which no param has", name)
	}
	delete(of.params, name)
	if param := dictOf(value); param.kind() == "resolve" {
		return loopField(s, param.text("field"))
	}
	parts, err := r.valueParts(of, value, false)
	return joinTexts(parts), err
}

func loopField(s *step, path string) (code, error) {
	if s.loop == nil || s.loop.memberText(path) == "" {
		return unsupportedError("the field %s of a parent", path)
	}
	c := pathCode(s.loop.memberText(path))
	c.falsy = false
	return c, nil
}

// valueParts returns a constant, text or reference as parts of an expression. formats says that a text is formatted as
// by Python.
func (r *restAPI) valueParts(of *dltResource, value any, formats bool) ([]code, error) {
	switch value := value.(type) {
	case string:
		if formats {
			return r.textParts(of, value)
		}
		return []code{constantCode(value)}, nil
	case nil, bool, int, float64:
		return []code{constantCode(value)}, nil
	case *pyliteral.NameExpr:
		return []code{r.referenceCode(value)}, nil
	case *pyliteral.FString:
		var out []code
		for _, part := range value.Parts {
			parts, err := r.valueParts(of, part, formats)
			if err != nil {
				return nil, err
			}
			out = append(out, parts...)
		}
		return flattenTexts(out), nil
	}
	_, err := unsupportedError("%s", kindOf(value))
	return nil, err
}

// textParts returns a text whose placeholders are replaced, as parts of an expression.
func (r *restAPI) textParts(of *dltResource, text string) ([]code, error) {
	var parts []code
	last := 0
	for _, found := range placeholders.FindAllStringIndex(text, -1) {
		if found[0] > last {
			parts = append(parts, constantCode(text[last:found[0]]))
		}
		last = found[1]
		inner := text[found[0]:found[1]]
		if inner == "{{" || inner == "}}" {
			parts = append(parts, constantCode(inner[:1]))
			continue
		}
		one, err := r.placeholderCode(of, inner[1:len(inner)-1])
		if err != nil {
			return nil, err
		}
		parts = append(parts, one)
	}
	if last < len(text) || len(parts) == 0 {
		parts = append(parts, constantCode(text[last:]))
	}
	return flattenTexts(parts), nil
}

// convertEndpoint converts the request of a resource, and returns how it logs in.
func (r *restAPI) convertEndpoint(of *dltResource) *login {
	s := of.step
	s.setMethod(of.endpoint.text("method"))
	r.convertAddress(of)
	auth := r.client["auth"]
	if own, has := of.endpoint["auth"]; has {
		auth = own
	}
	login := r.loginOfAuth(s, auth)
	r.convertParams(of, login)
	r.convertHeaders(of, r.client.childAt("headers"), login, false)
	r.convertHeaders(of, of.endpoint.childAt("headers"), login, true)
	if value := of.endpoint["json"]; value != nil {
		s.body = r.jsonValue(of, value)
	}
	switch data := of.endpoint["data"].(type) {
	case nil:
	case map[string]any:
		s.form, _ = r.jsonValue(of, data).(map[string]any)
	default:
		s.body = r.jsonValue(of, data)
	}
	if (s.body != nil || s.form != nil) && s.method == "" {
		s.method = "GET"
	}
	return login
}

// convertAddress sets the URL: the path below base_url, or one that is a whole URL.
func (r *restAPI) convertAddress(of *dltResource) {
	s := of.step
	path, err := r.valueParts(of, of.endpoint["path"], true)
	if err != nil {
		s.addGap(atRequest, "path", "%v", err)
	}
	if len(path) > 0 {
		text, isText := path[0].value.(string)
		if isText && (strings.HasPrefix(text, "http:") || strings.HasPrefix(text, "https:")) || !path[0].known && addressName.MatchString(path[0].text) {
			if base, isText := r.client["base_url"].(string); isText && !path[0].known {
				s.base = strings.TrimRight(base, "/")
			}
			s.url = templateValue(append(path[:1:1], rawPaths(path[1:])...))
			return
		}
	}
	parts, err := r.valueParts(of, r.client["base_url"], false)
	if err != nil || r.client["base_url"] == nil {
		s.addGap(atRequest, "base_url", "%s", kindOf(r.client["base_url"]))
		parts = []code{constantCode("https://api.example.com")}
	}
	if text, isText := parts[0].value.(string); isText && len(parts) == 1 {
		s.base = strings.TrimRight(text, "/")
	}
	if len(path) > 0 && joinTexts(path).text != "''" {
		parts = append(trimSlash(parts, true), append([]code{constantCode("/")}, rawPaths(trimSlash(path, false))...)...)
	}
	s.url = templateValue(flattenTexts(parts))
}

// convertParams converts the params of requests. Those of the incremental reading are set elsewhere, and secrets are sent
// by the connection.
func (r *restAPI) convertParams(of *dltResource, login *login) {
	s := of.step
	for _, name := range playbook.SortedKeys(of.params) {
		value := of.params[name]
		if form, secret := formOfValue(name, value); secret {
			login.addQuery(name, form)
			continue
		}
		if isIncremental(value) {
			continue
		}
		if list, isItems := value.([]any); isItems { // which is sent as several params
			if slices.ContainsFunc(list, isDict) {
				s.addGap(atRequest, "params", "%s: a list of dicts", name)
				continue
			}
			s.params[name] = r.jsonValue(of, list)
			continue
		}
		parts, err := r.valueParts(of, value, true)
		if err != nil {
			s.addGap(atRequest, "params", "%s: %v", name, err)
			continue
		}
		if sent := templateValue(parts); sent != nil {
			s.params[name] = asRendered(sent, true)
		}
	}
}

func isDict(value any) bool {
	_, is := value.(map[string]any)
	return is
}

func (r *restAPI) convertHeaders(of *dltResource, headers component, login *login, formats bool) {
	for _, name := range playbook.SortedKeys(headers) {
		if form, secret := formOfValue(name, headers[name]); secret {
			login.addHeader(name, form)
			continue
		}
		parts, err := r.valueParts(of, headers[name], formats)
		if err != nil {
			of.step.addGap(atRequest, "headers", "%s: %v", name, err)
			continue
		}
		of.step.headers[name] = templateValue(parts)
	}
}

// formOfValue returns a value with placeholders for its secrets; secret says that it has some: by where it leads, or by
// its name.
func formOfValue(name string, value any) (form string, secret bool) {
	switch value := value.(type) {
	case *pyliteral.NameExpr:
		return strings.ToUpper(keyOfReference(value)), isSecretReference(value)
	case *pyliteral.FString:
		for _, part := range value.Parts {
			text, isText := part.(string)
			if !isText {
				below, is := formOfValue("", part)
				text, secret = below, secret || is
			}
			form += text
		}
		return form, secret
	case string:
		if credential.MayName(name) && !strings.Contains(value, "{") {
			return strings.ToUpper(scaffold.NameOf(name, "VALUE")), true
		}
		return value, false
	}
	return "VALUE", false
}

// jsonValue returns a body with its placeholders replaced. A text that is one placeholder as a whole gets its value as it is.
func (r *restAPI) jsonValue(of *dltResource, value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, one := range value {
			out[key] = r.jsonValue(of, one)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, one := range value {
			out[i] = r.jsonValue(of, one)
		}
		return out
	}
	parts, err := r.valueParts(of, value, true)
	if err != nil {
		of.step.addGap(atRequest, "json", "%v", err)
		return nil
	}
	return templateValue(parts)
}

// convertActions converts response_actions, and what dlt retries by itself.
func (r *restAPI) convertActions(of *dltResource) {
	s := of.step
	actions, _ := of.endpoint["response_actions"].([]any)
	for _, one := range actions {
		action := dictOf(one)
		if action == nil || action["action"] != "ignore" {
			s.addGap(atRetry, "response_actions", "%s", actionText(one))
			continue
		}
		status, has := action.wholeNumber("status_code")
		content := action.text("content")
		failed, succeeded := "error is defined", "error is not defined"
		if has {
			failed, succeeded = fmt.Sprintf("error.status == %d", status), fmt.Sprintf("this.meta.status == %d", status)
		}
		if content != "" {
			failed += " and string(error.body) contains " + quoteText(content)
			succeeded += " and string(response) contains " + quoteText(content)
		}
		if !has && content == "" {
			continue // which never applies
		}
		if !has || status >= 400 {
			s.failures = append(s.failures, policy{when: strings.TrimPrefix(failed, "error is defined and "), then: []pair{{"ignore", true}}})
		}
		if !has || status < 400 {
			s.failures = append(s.failures, policy{when: succeeded, then: []pair{{"result", noRows}}})
		}
	}
	s.failures = append(s.failures, policy{when: "error.class in ['retryable', 'rate_limited']", then: retryPolicy(nil, dltRetries)})
}

// dltRetries is how often dlt tries a request again: five attempts.
const dltRetries = 4

// actionText describes an action that is not converted.
func actionText(of any) string {
	action := dictOf(of)
	if action == nil {
		return kindOf(of)
	}
	text := "the action " + kindOf(action["action"])
	if status, has := action.wholeNumber("status_code"); has {
		text += fmt.Sprintf(" for status %d", status)
	}
	return text
}

// mergedChanges adds a value to the body at a path.
func mergedChanges(into map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		below, isMap := into[key].(map[string]any)
		if isMap {
			below = maps.Clone(below)
		} else {
			below = map[string]any{}
		}
		into[key], into = below, below
	}
	into[path[len(path)-1]] = value
}
