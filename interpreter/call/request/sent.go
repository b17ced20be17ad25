package request

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/statement"
)

// Whether two requests are the same depends on how a tool writes their fields: page=1 in params and ?page=1 in url
// are one query. So this file defines what the tool http sends, for the tool and for the check for repeated
// requests.

const (
	fieldForm = "form"
	fieldPath = "path"
)

// Default headers of a request.
const (
	UsualAccept    = "application/json, */*;q=0.5"
	UsualUserAgent = "reprise"
)

// MergeQuery adds params to a query, replacing parameters of the same name; with an empty query it encodes a form.
// what names the params in errors. The author's own query is kept byte for byte, because some servers sign it.
func MergeQuery(query string, params map[string]any, what string) (string, error) {
	if len(params) == 0 {
		return query, nil
	}
	var parts []string
	for _, pair := range strings.Split(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if _, replaced := params[unescapeText(name)]; pair != "" && !replaced {
			parts = append(parts, pair)
		}
	}
	for _, name := range playbook.SortedKeys(params) {
		values, err := ParamTexts(params[name], what+"."+name)
		if err != nil {
			return "", err
		}
		for _, value := range values {
			parts = append(parts, url.QueryEscape(name)+"="+url.QueryEscape(value))
		}
	}
	return strings.Join(parts, "&"), nil
}

// unescapeText decodes a name or a value of a query; text that cannot be decoded is unchanged.
func unescapeText(text string) string {
	if decoded, err := url.QueryUnescape(text); err == nil {
		return decoded
	}
	return text
}

// ParamTexts returns the values of a parameter or header: none for nil, several for a list.
func ParamTexts(v any, name string) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return nil, fmt.Errorf("%s must be text or a list, not a map", name)
	case []any:
		all := make([]string, 0, len(v))
		for _, item := range v {
			one, err := ParamTexts(item, name)
			if err != nil {
				return nil, err
			}
			all = append(all, one...)
		}
		return all, nil
	default:
		return []string{expression.Text(v)}, nil
	}
}

// Content types of the bodies that EncodeBody encodes.
const (
	JSONType = "application/json"
	FormType = "application/x-www-form-urlencoded"
)

// EncodeBody returns the body of a request and its content type; nil for none. form is nil if the request has no form.
func EncodeBody(body any, form map[string]any) (content []byte, contentType string, err error) {
	switch {
	case form != nil && body != nil:
		return nil, "", fmt.Errorf("body and form exclude each other")
	case form != nil:
		encoded, err := MergeQuery("", form, fieldForm)
		return []byte(encoded), FormType, err
	case body == nil:
		return nil, "", nil
	}
	if text, ok := body.(string); ok {
		return []byte(text), "text/plain; charset=utf-8", nil
	}
	encoded, err := expression.Encode(body)
	if err != nil {
		return nil, "", fmt.Errorf("the body cannot be written as JSON: %w", err)
	}
	return encoded, JSONType, nil
}

// sentParts returns what a request sends, in a canonical form.
func (r *Request) sentParts(tool string) map[string]any {
	fields := make(map[string]any, len(r.Fields)+1)
	for _, name := range playbook.SortedKeys(r.Fields) {
		fields[name] = r.Fields[name].Data
	}
	switch of := playbook.TraitsOf(tool); {
	case of.Requests:
		return r.sentByHTTP(fields, "GET")
	case of.Dialect != "":
		fields["bound"] = r.boundParams(statement.Dialect(of.Dialect))
		return fields
	case of.IntoFile:
		fields[fieldPath] = path.Clean(expression.Text(fields[fieldPath]))
		return fields
	}
	if onStart, isMap := fields[playbook.FieldOnStart].(map[string]any); isMap {
		fields[playbook.FieldOnStart] = r.sentByHTTP(onStart, "POST")
	}
	if args, isMap := r.Args.Data.(map[string]any); !isMap || len(args) > 0 { // no args and nil are the same to a tool
		fields["args"] = r.Args.Data
	}
	return fields
}

// boundParams returns the parameters of a statement as the database sees them: PostgreSQL reads all of them from
// text, and SQLite has no booleans.
func (r *Request) boundParams(dialect statement.Dialect) []any {
	params := make([]any, len(r.Params))
	for i, param := range r.Params {
		switch value := param.Data.(type) {
		case nil, []any, map[string]any:
			params[i] = value
		case bool:
			params[i] = map[bool]any{true: 1, false: 0}[value]
			if dialect == statement.Postgres {
				params[i] = expression.Text(value)
			}
		default:
			params[i] = value
			if dialect == statement.Postgres {
				params[i] = expression.Text(value)
			}
		}
	}
	return params
}

// sentByHTTP returns the fields of an HTTP request as they are sent. Fields that cannot be sent are unchanged: the
// attempt reports the error.
func (r *Request) sentByHTTP(fields map[string]any, method string) map[string]any {
	params, isMap := fields[playbook.FieldParams].(map[string]any)
	form, isForm := fields[fieldForm].(map[string]any)
	headers, areHeaders := fields[playbook.FieldHeaders].(map[string]any)
	if !isMap && fields[playbook.FieldParams] != nil || !isForm && fields[fieldForm] != nil || !areHeaders && fields[playbook.FieldHeaders] != nil {
		return fields
	}
	target, err := r.sentTarget(expression.Text(fields[playbook.FieldURL]), params)
	if err != nil {
		return fields
	}
	content, contentType, err := EncodeBody(fields[playbook.FieldBody], form)
	if err != nil {
		return fields
	}
	sent := playbook.CloneMap(fields, 0)
	for _, name := range []string{playbook.FieldParams, fieldForm} {
		delete(sent, name)
	}
	sent[playbook.FieldURL], sent[playbook.FieldBody] = target, nil
	if content != nil {
		sent[playbook.FieldBody] = string(content)
	}
	sent[playbook.FieldMethod] = strings.ToUpper(cmp.Or(strings.TrimSpace(expression.Text(fields[playbook.FieldMethod])), method))
	if sent[playbook.FieldHeaders], err = headersSent(headers, contentType); err != nil {
		return fields
	}
	return sent
}

// headersSent returns headers with lower-case names, and the default ones.
func headersSent(headers map[string]any, contentType string) (map[string]any, error) {
	sent := map[string]any{}
	for _, name := range playbook.SortedKeys(headers) {
		values, err := ParamTexts(headers[name], name)
		if err != nil {
			return nil, err
		}
		lower := strings.ToLower(name)
		for _, value := range values {
			list, _ := sent[lower].([]any)
			sent[lower] = append(list, strings.TrimSpace(value))
		}
	}
	for _, usual := range [][2]string{{"content-type", contentType}, {"accept", UsualAccept}, {"user-agent", UsualUserAgent}} {
		if list, _ := sent[usual[0]].([]any); usual[1] != "" && (len(list) == 0 || list[0] == "") {
			sent[usual[0]] = []any{usual[1]}
		}
	}
	return sent, nil
}

// sentTarget normalizes the target of a request (RFC 3986, section 6): params are merged into the query, parameters
// are sorted by name while values of one name keep their order, and the fragment is dropped. If the call began with
// a path, the host is omitted, because later pages may or may not include the connection's host.
func (r *Request) sentTarget(text string, params map[string]any) ([]any, error) {
	target, err := ParseURL(text)
	if err != nil {
		return nil, err
	}
	query, err := MergeQuery(target.RawQuery, params, playbook.FieldParams)
	if err != nil {
		return nil, err
	}
	var pairs []any
	for _, pair := range strings.Split(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); pair != "" {
			pairs = append(pairs, []any{unescapeText(name), unescapeText(value)})
		}
	}
	slices.SortStableFunc(pairs, func(x, y any) int {
		return strings.Compare(x.([]any)[0].(string), y.([]any)[0].(string)) // each element is a pair that begins with the name
	})
	host := []any{target.Scheme, target.User.String(), hostSent(target)}
	if r.Auth != "" && r.Origin == "" {
		host = nil
	}
	return []any{host, "/" + strings.TrimPrefix(strings.TrimPrefix(plainEscapes(target.EscapedPath()), "./"), "/"), pairs, target.Opaque}, nil
}

// hostSent returns the host of a URL, with its port unless that is the default.
func hostSent(target *url.URL) string {
	host, port := strings.ToLower(target.Hostname()), target.Port()
	if port == "" || port == map[string]string{"http": "80", "https": "443"}[target.Scheme] {
		return host
	}
	return host + ":" + port
}

// plainEscapes normalizes the escapes of a path: unreserved characters are unescaped, and hex digits are upper
// case.
func plainEscapes(text string) string {
	var plain strings.Builder
	for len(text) > 0 {
		at := strings.IndexByte(text, '%')
		if at < 0 || at+3 > len(text) {
			break
		}
		plain.WriteString(text[:at])
		escape := strings.ToUpper(text[at : at+3])
		if decoded, err := url.PathUnescape(escape); err == nil && isUnreserved(decoded[0]) {
			escape = decoded
		}
		plain.WriteString(escape)
		text = text[at+3:]
	}
	plain.WriteString(text)
	return plain.String()
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
