package scaffold

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Operation is an operation in an OpenAPI document.
type Operation struct {
	ID     string // operationId, else method and path
	Method string
	Path   string
	Desc   string // one line
}

// OpenAPIDocument is an OpenAPI document: version 3.0, 3.1, or Swagger 2.0.
type OpenAPIDocument struct {
	of   *openapi3.T
	from string // where it was read, for servers without a host
}

// ReadOpenAPI parses a document in JSON or YAML. References to other files are not followed. from is its URL; "" for
// a file.
func ReadOpenAPI(data []byte, from string) (of *OpenAPIDocument, err error) {
	if len(data) > maxDocument {
		return nil, fmt.Errorf("the document is larger than %d MiB", maxDocument>>20)
	}
	defer func() { // its readers are not ours
		if recover() != nil {
			of, err = nil, errors.New("the document is not valid OpenAPI")
		}
	}()
	var head struct {
		Swagger string `yaml:"swagger"`
		OpenAPI string `yaml:"openapi"`
	}
	if err := yaml.Unmarshal(data, &head); err != nil || head.Swagger == "" && head.OpenAPI == "" {
		return nil, errors.New("not an OpenAPI document: it has neither openapi nor swagger with a version")
	}
	document := &OpenAPIDocument{from: from}
	if head.Swagger != "" {
		document.of, err = readSwagger(data)
	} else {
		document.of, err = openapi3.NewLoader().LoadFromData(data)
	}
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	return document, nil
}

// readSwagger parses version 2.0.
func readSwagger(data []byte) (*openapi3.T, error) {
	var tree any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	asJSON, err := json.Marshal(asJSONTree(tree))
	if err != nil {
		return nil, err
	}
	var old openapi2.T
	if err := json.Unmarshal(asJSON, &old); err != nil {
		return nil, err
	}
	return openapi2conv.ToV3(&old)
}

// asJSONTree converts a YAML tree to what JSON would have, with texts as keys, such as the status 200. A list of
// schemas in `items` is replaced by one schema: Swagger does not allow the list, but some documents have it.
func asJSONTree(tree any) any {
	switch of := tree.(type) {
	case map[any]any:
		members := make(map[string]any, len(of))
		for key, member := range of {
			members[fmt.Sprint(key)] = member
		}
		return asJSONTree(members)
	case map[string]any:
		if list, isList := of["items"].([]any); isList && len(list) > 0 {
			of["items"] = list[0]
		}
		for key, member := range of {
			of[key] = asJSONTree(member)
		}
	case []any:
		for i, item := range of {
			of[i] = asJSONTree(item)
		}
	}
	return tree
}

// Operations returns all operations of the document, by path and method; those that read come first.
func (d *OpenAPIDocument) Operations() (all []Operation) {
	if d.of.Paths == nil {
		return nil
	}
	for path, item := range d.of.Paths.Map() {
		for method, operation := range item.Operations() {
			one := Operation{ID: operation.OperationID, Method: method, Path: path, Desc: firstLine(cmp.Or(operation.Summary, operation.Description))}
			one.ID = cmp.Or(one.ID, method+" "+path)
			all = append(all, one)
		}
	}
	order := func(o Operation) string {
		if o.Method == "GET" {
			return "0" + o.Path
		}
		return "1" + o.Path + o.Method
	}
	slices.SortFunc(all, func(a, b Operation) int { return cmp.Compare(order(a), order(b)) })
	return all
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// findOperation returns the operation with an ID, or with a method and path.
func (d *OpenAPIDocument) findOperation(id string) (Operation, error) {
	all := d.Operations()
	var ids []string
	for _, one := range all {
		if one.ID == id || strings.EqualFold(one.Method+" "+one.Path, id) {
			return one, nil
		}
		ids = append(ids, one.ID)
	}
	if near := expression.Suggest(id, ids); near != "" {
		return Operation{}, fmt.Errorf("the document has no operation %q; did you mean %q?", id, near)
	}
	const shown = 10
	more := ""
	if len(ids) > shown {
		more = fmt.Sprintf(" and %d more", len(ids)-shown)
	}
	return Operation{}, fmt.Errorf("the document has no operation %q, expected one of %s%s", id, strings.Join(ids[:min(len(ids), shown)], ", "), more)
}

// DescribeOperation describes the request of an operation.
func (d *OpenAPIDocument) DescribeOperation(id string) (of *Description, err error) {
	one, err := d.findOperation(id)
	if err != nil {
		return nil, err
	}
	defer func() {
		if recover() != nil {
			of, err = nil, fmt.Errorf("operation %q of the document cannot be read", id)
		}
	}()
	item := d.of.Paths.Value(one.Path)
	operation := item.GetOperation(one.Method)
	of = &Description{Name: cmp.Or(operation.OperationID, one.Path), Desc: one.Desc}
	of.Method, of.Path = one.Method, one.Path
	d.setBase(of, operation)
	for _, refs := range []openapi3.Parameters{item.Parameters, operation.Parameters} {
		for _, ref := range refs {
			if ref.Value != nil {
				of.addParameter(ref.Value)
			}
		}
	}
	of.describeBody(operation)
	of.Answer = answerOf(operation)
	d.useSecurity(of, operation)
	of.hideSecrets()
	return of, nil
}

// setBase sets the base URL to the first server. A server without a host is relative to the document's URL.
func (d *OpenAPIDocument) setBase(of *Description, operation *openapi3.Operation) {
	servers := d.of.Servers
	if operation.Servers != nil && len(*operation.Servers) > 0 {
		servers = *operation.Servers
	}
	address := ""
	if len(servers) > 0 && servers[0] != nil {
		address = servers[0].URL
		for name, variable := range servers[0].Variables {
			if variable != nil {
				address = strings.ReplaceAll(address, "{"+name+"}", variable.Default)
			}
		}
	}
	var base Request
	if !strings.Contains(address, "://") && d.from != "" {
		if err := base.setAddress(d.from); err == nil {
			address = base.Base + "/" + strings.TrimPrefix(address, "/")
		}
	}
	base = Request{}
	if err := base.setAddress(strings.TrimRight(address, "/")); err != nil || !strings.Contains(address, "://") {
		of.Base = "https://api.example.com"
		of.Notes = append(of.Notes, "the document names no server: set its URL in workload")
		if !strings.Contains(address, "://") {
			of.Path = strings.TrimRight(address, "/") + of.Path
		}
		return
	}
	of.Base, of.Path = base.Base, strings.TrimRight(base.Path, "/")+of.Path
}

// addParameter adds a required parameter, and lists an optional one.
func (d *Description) addParameter(p *openapi3.Parameter) {
	value := usualValue(p)
	if _, isMap := value.(map[string]any); isMap {
		value = "" // what is written in a query is text
	}
	pair := Pair{p.Name, value}
	switch {
	case p.In == openapi3.ParameterInQuery && p.Required:
		d.Params = append(d.Params, pair)
	case p.In == openapi3.ParameterInQuery:
		d.Accepts = append(d.Accepts, pair)
	case p.In == openapi3.ParameterInHeader && p.Required:
		d.Headers = append(d.Headers, Pair{strings.ToLower(p.Name), value})
	}
}

// usualValue returns an example value of a parameter.
func usualValue(p *openapi3.Parameter) any {
	if p.Example != nil {
		return toCanonical(p.Example)
	}
	for _, name := range playbook.SortedKeys(p.Examples) {
		if example := p.Examples[name]; example != nil && example.Value != nil {
			return toCanonical(example.Value.Value)
		}
	}
	if p.Schema == nil || p.Schema.Value == nil {
		return ""
	}
	schema := p.Schema.Value
	if schema.Default != nil {
		return toCanonical(schema.Default)
	}
	if schema.Type.Is(openapi3.TypeInteger) && schema.Example == nil {
		if slices.Contains(sizeParams, plainName(p.Name)) && schema.Max != nil {
			return int(*schema.Max)
		}
		return nil // a parameter that is not said
	}
	if schema.Type.Is(openapi3.TypeBoolean) {
		return false
	}
	return sampleOf(p.Schema, p.Name)
}

// toCanonical converts a value of a document to the types that the language uses; nil if that is not possible.
func toCanonical(value any) any {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	decoded, err := expression.Decode(encoded)
	if err != nil {
		return nil
	}
	return decoded
}

// describeBody describes the body of the request.
func (d *Description) describeBody(operation *openapi3.Operation) {
	if operation.RequestBody == nil || operation.RequestBody.Value == nil {
		return
	}
	content := operation.RequestBody.Value.Content
	for _, media := range playbook.SortedKeys(content) {
		if content[media] == nil {
			continue
		}
		value := exampleOf(content[media])
		switch {
		case strings.Contains(media, "json"):
			d.Body = value
			return
		case media == "application/x-www-form-urlencoded":
			d.Form = pairsOfMap(value)
			return
		}
	}
	d.Notes = append(d.Notes, "the request body has a content type that is not supported, so write it by hand: "+strings.Join(playbook.SortedKeys(content), ", "))
}

func exampleOf(media *openapi3.MediaType) any {
	if media.Example != nil {
		return toCanonical(media.Example)
	}
	for _, name := range playbook.SortedKeys(media.Examples) {
		if example := media.Examples[name]; example != nil && example.Value != nil && example.Value.Value != nil {
			return toCanonical(example.Value.Value)
		}
	}
	return sampleOf(media.Schema, "")
}

// answerOf returns the response for success; nil if it is not documented.
func answerOf(operation *openapi3.Operation) *Response {
	if operation.Responses == nil {
		return nil
	}
	responses := operation.Responses.Map()
	for _, status := range []string{"200", "2XX", "201", "202", "203", "206", "default"} {
		ref := responses[status]
		if ref == nil || ref.Value == nil {
			continue
		}
		answer := &Response{}
		for name := range ref.Value.Headers {
			answer.Linked = answer.Linked || strings.EqualFold(name, "link")
		}
		text := operation.Description
		if ref.Value.Description != nil {
			text += *ref.Value.Description
		}
		answer.Linked = answer.Linked || linkHeader.MatchString(text)
		for _, media := range playbook.SortedKeys(ref.Value.Content) {
			if one := ref.Value.Content[media]; one != nil && strings.Contains(media, "json") {
				answer.Body = exampleOf(one)
				break
			}
		}
		return answer
	}
	return nil
}

// linkHeader matches texts that mention the Link header.
var linkHeader = regexp.MustCompile("(?i)\\blink[`'\"]? (response )?header|`link` header|rel=\"?next")

// useSecurity makes the request authenticate as the document says.
func (d *OpenAPIDocument) useSecurity(of *Description, operation *openapi3.Operation) {
	requirements := d.of.Security
	if operation.Security != nil {
		requirements = *operation.Security
	}
	if d.of.Components == nil {
		return
	}
	for _, requirement := range requirements {
		for _, name := range playbook.SortedKeys(requirement) {
			ref := d.of.Components.SecuritySchemes[name]
			if ref != nil && ref.Value != nil && of.loginOf(ref.Value) {
				return
			}
		}
	}
}

// loginOf adds the credentials of a security scheme, with a placeholder for the secret.
func (d *Description) loginOf(scheme *openapi3.SecurityScheme) bool {
	switch {
	case scheme.Type == "http" && strings.EqualFold(scheme.Scheme, "basic"):
		d.useAuthorization("Basic ")
	case scheme.Type == "http", scheme.Type == "openIdConnect", scheme.Type == "oauth2" && (scheme.Flows == nil || scheme.Flows.ClientCredentials == nil):
		d.useAuthorization("Bearer TOKEN")
	case scheme.Type == "oauth2":
		d.loginBy(fmt.Sprintf(`{"oauth2": {"token_url": %s, "client_id": "ID", "client_secret": "SECRET"}}`, strconv.Quote(scheme.Flows.ClientCredentials.TokenURL)))
	case scheme.Type == "apiKey" && scheme.In == "header":
		if strings.EqualFold(scheme.Name, "authorization") {
			d.useAuthorization("VALUE")
		} else {
			d.headerLogin(strings.ToLower(scheme.Name))
		}
	case scheme.Type == "apiKey" && scheme.In == "query":
		d.Params = append(d.Params, Pair{scheme.Name, d.passTemplate(scheme.Name, "parameter")})
	case scheme.Type == "apiKey" && scheme.In == "cookie":
		d.loginBy("header:Cookie: " + scheme.Name + "=VALUE@" + d.hostURL())
	default:
		return false
	}
	return true
}
