package check

import (
	"encoding/json"
	"regexp"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// checkJSONText warns about JSON written as text with templates in it: a quote in a value breaks it, or changes its
// meaning.
func checkJSONText(c *checker) {
	bodies := lists.Map(c.pb.AllCalls(), func(call playbook.CallAt) *playbook.Node { return call.Action.Field("body") })
	for _, step := range c.pb.CallSteps() {
		for next := range step.NextCalls() {
			bodies = append(bodies, next.Body)
		}
	}
	for _, body := range bodies {
		if body == nil || body.Template == nil {
			continue
		}
		if structured, ok := structuredJSON(body.Template); ok {
			c.Warnf(body.Pos, codeJSONText, "a quote in a value breaks this JSON; write it as YAML, where values need no escapes: body: %s", playbook.ShortenText(structured))
		}
	}
	for _, read := range c.usableStatements() {
		for i, template := range read.parsed.Templates() {
			checkJSONLiteral(c, template, read.node.Position(read.parsed.ParamOffset(i)))
		}
	}
}

// jsonPath matches the beginning of a path for SQL's JSON functions.
var jsonPath = regexp.MustCompile(`^\s*(?:(?:lax|strict)\s+)?\$\s*[.\[?]`)

// checkJSONLiteral warns about a literal of a statement that is JSON, or a path into JSON, around its templates.
func checkJSONLiteral(c *checker, template *expression.Template, pos source.Position) {
	if _, single := template.SingleProgram(); single {
		return
	}
	if built, ok := builtJSON(template); ok {
		c.Warnf(pos, codeJSONText, "a quote in a value breaks this JSON; let tojson build it: '{{ %s | tojson }}'", playbook.ShortenText(built))
		return
	}
	if jsonPath.MatchString(template.Segments()[0].Text) {
		c.Warnf(pos, codeJSONText, "a value can change the meaning of this path; use operators, as in doc -> 'items' -> {{ n }}, "+
			"or in PostgreSQL pass values as vars, as in jsonb_path_query(doc, '$.items[$n]', '{{ {n: n} | tojson }}')")
	}
}

// structuredJSON returns the equivalent YAML of a template that is JSON as text. ok is false for other text.
func structuredJSON(template *expression.Template) (string, bool) {
	return rewrittenJSON(template, func(source string, inText bool) string {
		source = "{{ " + source + " }}"
		if inText {
			return source
		}
		return quotedYAML(source)
	})
}

// builtJSON is structuredJSON, but returns an expression.
func builtJSON(template *expression.Template) (string, bool) {
	built, ok := rewrittenJSON(template, func(source string, inText bool) string {
		if inText {
			return `" ~ ` + source + ` ~ "`
		}
		return source
	})
	return strings.ReplaceAll(built, `"" ~ `, ""), ok // joined values are text already
}

// rewrittenJSON returns JSON text with its templates replaced; ok is false if it is not JSON.
func rewrittenJSON(template *expression.Template, replace func(source string, inText bool) string) (string, bool) {
	if _, single := template.SingleProgram(); single {
		return "", false
	}
	var plain, out strings.Builder
	inText := false
	for _, segment := range template.Segments() {
		if segment.Program != nil {
			plain.WriteByte('0')
			out.WriteString(replace(strings.TrimSpace(segment.Program.Source()), inText))
			continue
		}
		plain.WriteString(segment.Text)
		out.WriteString(segment.Text)
		inText = endsInText(segment.Text, inText)
	}
	text := strings.TrimSpace(plain.String())
	if text == "" || text[0] != '{' && text[0] != '[' || !json.Valid([]byte(text)) {
		return "", false
	}
	return strings.Join(strings.Fields(out.String()), " "), true
}

// endsInText reports whether a piece of JSON ends inside a string.
func endsInText(piece string, inText bool) bool {
	for i := 0; i < len(piece); i++ {
		switch piece[i] {
		case '"':
			inText = !inText
		case '\\':
			i++
		}
	}
	return inText
}

func quotedYAML(template string) string {
	if strings.Contains(template, `"`) {
		return "'" + strings.ReplaceAll(template, "'", "''") + "'"
	}
	return `"` + template + `"`
}
