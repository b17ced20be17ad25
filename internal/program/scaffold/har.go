package scaffold

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/interpreter/expression"
)

// maxDocument is the largest HAR file or OpenAPI document that is read, in bytes. Parsed, it takes about twenty times
// as much memory.
const maxDocument = 64 << 20

// archive is the part of a HAR file (version 1.2) that is used.
type archive struct {
	Log struct {
		Entries []entry `json:"entries"`
	} `json:"log"`
}

type entry struct {
	Request struct {
		Method   string      `json:"method"`
		URL      string      `json:"url"`
		Headers  []nameValue `json:"headers"`
		PostData *struct {
			MimeType string      `json:"mimeType"`
			Text     string      `json:"text"`
			Params   []nameValue `json:"params"`
		} `json:"postData"`
	} `json:"request"`
	Response struct {
		Status  int         `json:"status"`
		Headers []nameValue `json:"headers"`
		Content struct {
			MimeType string `json:"mimeType"`
			Text     string `json:"text"`
			Encoding string `json:"encoding"`
		} `json:"content"`
	} `json:"response"`
}

type nameValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// FromHAR describes a request recorded by a browser. It chooses the most frequent kind of request with JSON
// responses, the first one if several are equally frequent. The error says what is missing, without values of the
// file.
func FromHAR(data []byte) (*Description, error) {
	if len(data) > maxDocument {
		return nil, fmt.Errorf("the HAR file is larger than %d MiB", maxDocument>>20)
	}
	var of archive
	if err := json.Unmarshal([]byte(strings.TrimPrefix(string(data), "\uFEFF")), &of); err != nil {
		return nil, errors.New("not a HAR file: expected JSON with log.entries")
	}
	kinds := map[string][]*Description{}
	var order []string
	for _, one := range of.Log.Entries {
		described := one.describeEntry()
		if described == nil {
			continue
		}
		kind := described.requestKind()
		if kinds[kind] == nil {
			order = append(order, kind)
		}
		kinds[kind] = append(kinds[kind], described)
	}
	if len(order) == 0 {
		return nil, errors.New("the HAR file has no request with a JSON response")
	}
	most := order[0]
	for _, kind := range order {
		if len(kinds[kind]) > len(kinds[most]) {
			most = kind
		}
	}
	first := kinds[most][0]
	for _, later := range kinds[most][1:] {
		first.Later = append(first.Later, later.Request)
	}
	first.hideSecrets()
	if len(order) > 1 {
		first.Notes = append(first.Notes, fmt.Sprintf("the HAR file has %d kinds of requests; this playbook uses %s %s", len(order), first.Method, first.Path))
	}
	return first, nil
}

// requestKind returns a key that is the same for requests that differ only in their parameters.
func (d *Description) requestKind() string {
	query := ""
	if body, isMap := d.Body.(map[string]any); isMap { // of GraphQL, many things have one address
		query = expression.Text(body["operationName"]) + expression.Text(body["query"])
	}
	return strings.Join([]string{d.Method, d.Base, d.Path, query}, " ")
}

// describeEntry describes a request with a JSON response; nil for others.
func (e entry) describeEntry() *Description {
	d := &Description{}
	d.Method = strings.ToUpper(strings.ToValidUTF8(e.Request.Method, ""))
	if !slices.Contains(methods, d.Method) || d.Method == "OPTIONS" || e.Response.Status >= 400 || d.setAddress(e.Request.URL) != nil {
		return nil
	}
	body, isJSON := e.answerValue()
	if !isJSON {
		return nil
	}
	for _, header := range e.Request.Headers {
		d.Headers = append(d.Headers, Pair{strings.ToLower(strings.ToValidUTF8(header.Name, "")), strings.ToValidUTF8(header.Value, "")})
	}
	if post := e.Request.PostData; post != nil {
		d.setBody(post.Text, post.MimeType)
		if post.Text == "" {
			for _, param := range post.Params {
				d.Form = addPair(d.Form, unescapeText(param.Name), unescapeText(param.Value))
			}
			d.Text = ""
		}
	}
	d.Answer = &Response{Body: body}
	for _, header := range e.Response.Headers {
		isNext := strings.Contains(header.Value, `rel="next"`) || strings.Contains(header.Value, "rel=next")
		d.Answer.Linked = d.Answer.Linked || isNext && strings.EqualFold(header.Name, "link")
	}
	return d
}

// answerValue returns the response's value; false unless it is a JSON object or array.
func (e entry) answerValue() (any, bool) {
	text := []byte(e.Response.Content.Text)
	if e.Response.Content.Encoding == "base64" {
		decoded, err := base64.StdEncoding.DecodeString(e.Response.Content.Text)
		if err != nil {
			return nil, false
		}
		text = decoded
	}
	if !utf8.Valid(text) {
		return nil, false
	}
	value, err := expression.Decode(text)
	if err != nil {
		return nil, false
	}
	switch value.(type) {
	case map[string]any, []any:
		return value, true
	}
	return nil, false
}
