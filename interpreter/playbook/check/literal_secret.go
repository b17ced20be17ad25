package check

import (
	"net/url"
	"slices"
	"strings"

	"reprise/interpreter/credential"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// checkLiteralSecrets warns about a password, token or key in the file itself: files are committed, sent and shown,
// while a worker's connections are not.
func checkLiteralSecrets(c *checker) {
	for _, key := range playbook.SortedKeys(c.pb.Workload) {
		checkSecretValue(c, c.pb.WorkloadPos.Place(key, source.Position{}), key, c.pb.Workload[key])
	}
	for _, call := range c.pb.AllCalls() {
		fields := call.Action.Fields
		if call.Action.Args != nil {
			fields = append(slices.Clone(fields), call.Action.Args.Entries...)
		}
		for _, field := range fields {
			if known := c.specField(call.Action, field.Key); known && field.Value.Entries == nil {
				if field.Key == "url" {
					checkSecretInURL(c, field.Value)
				}
				continue // a field of the tool has its own meaning
			}
			checkSecretEntries(c, field)
		}
	}
	for _, step := range c.pb.CallSteps() {
		for next := range step.NextCalls() {
			for _, node := range []*playbook.Node{next.Params, next.Headers, next.Body} {
				checkSecretEntries(c, &playbook.Entry{Value: node})
			}
		}
	}
}

// specField reports whether a key is a field of the call's tool.
func (c *checker) specField(action *playbook.Action, key string) bool {
	spec := c.toolSpec(c.toolOf(action))
	if spec == nil {
		return false
	}
	_, known := spec.Field(key)
	return known
}

// checkSecretEntries checks the value of a key, and those inside it.
func checkSecretEntries(c *checker, entry *playbook.Entry) {
	node := entry.Value
	switch {
	case node == nil:
	case node.Template == nil && node.Entries == nil && node.Items == nil:
		checkSecretValue(c, node.Pos, entry.Key, node.Value)
	case node.Template != nil:
		if text, ok := node.Template.LiteralText(); ok {
			checkSecretValue(c, node.Pos, entry.Key, text)
		}
	}
	if node != nil {
		for _, inner := range node.Entries {
			checkSecretEntries(c, inner)
		}
		for _, item := range node.Items {
			checkSecretEntries(c, &playbook.Entry{Value: item})
		}
	}
}

// checkSecretValue warns about a text that is a secret, according to its key or its form. A short text, or one in
// angle brackets, is a placeholder.
func checkSecretValue(c *checker, pos source.Position, key string, value any) {
	text, _ := value.(string)
	text = strings.TrimSpace(text)
	const shortest = 4
	if !credential.IsWritten(key, text) || len(text) < shortest || strings.HasPrefix(text, "<") || strings.Trim(text, "*x…") == "" {
		return
	}
	warnLiteral(c, pos, key)
}

func warnLiteral(c *checker, pos source.Position, what string) {
	c.Warnf(pos, codeLiteralSecret, "%s contains a secret, which everybody who can read this file can use; move it to a connection of the worker, and name the connection in auth", what)
}

// rendered replaces expressions in a URL that is only inspected.
const rendered = "_rendered_"

// checkSecretInURL warns about a password, a key or a webhook path in a URL.
func checkSecretInURL(c *checker, node *playbook.Node) {
	address, err := url.Parse(writtenURL(node))
	if err != nil {
		return
	}
	if password, has := address.User.Password(); has {
		checkWritten(c, node.Pos, "password", password)
	}
	for key, values := range address.Query() {
		for _, value := range values {
			checkWritten(c, node.Pos, key, value)
		}
	}
	for _, segment := range credential.PathSecrets(address.Hostname(), address.EscapedPath()) {
		if !strings.Contains(segment, rendered) {
			warnLiteral(c, node.Pos, "the path of url")
			return
		}
	}
}

// writtenURL returns the URL as in the file, with rendered for each expression.
func writtenURL(node *playbook.Node) string {
	if node.Template == nil {
		return node.Raw
	}
	var written strings.Builder
	for _, segment := range node.Template.Segments() {
		if segment.Program != nil {
			written.WriteString(rendered)
		} else {
			written.WriteString(segment.Text)
		}
	}
	return written.String()
}

// checkWritten checks a literal value in a URL, unless it contains an expression.
func checkWritten(c *checker, pos source.Position, key, value string) {
	if !strings.Contains(value, rendered) {
		checkSecretValue(c, pos, key, value)
	}
}
