package playbook

import (
	"net/url"
	"slices"
	"strings"

	"reprise/interpreter/source"
)

// secretKeys are keys whose values are secrets, as plainWord has them.
var secretKeys = []string{
	"password", "passwd", "passphrase", "token", "accesstoken", "refreshtoken", "authtoken", "apitoken", "bearertoken", "idtoken", "privatetoken",
	"xauthtoken", "xapitoken", "xaccesstoken", "authorization", "proxyauthorization", "apikey", "xapikey", "secret", "secretkey", "clientsecret",
	"apisecret", "appsecret", "secretaccesskey", "privatekey", "cookie",
}

// checkLiteralSecrets warns of a password, token or key that is in the file itself: files are
// committed, sent and shown, and a connection of the worker is not.
func checkLiteralSecrets(c *checker) {
	for _, key := range SortedKeys(c.pb.Workload) {
		c.checkSecretValue(c.pb.WorkloadPos.at(key, source.Position{}), key, c.pb.Workload[key])
	}
	for _, call := range c.pb.actions() {
		fields := call.action.Fields
		if call.action.Args != nil {
			fields = append(slices.Clone(fields), call.action.Args.Entries...)
		}
		for _, field := range fields {
			if known := c.specField(call.action, field.Key); known && field.Value.Entries == nil {
				if field.Key == "url" {
					c.checkSecretInURL(field.Value)
				}
				continue // a field of the tool has its own meaning
			}
			c.checkSecretEntries(field)
		}
	}
	for _, step := range c.pb.Steps {
		for next := range step.nextCalls() {
			for _, node := range []*Node{next.Params, next.Headers, next.Body} {
				c.checkSecretEntries(&Entry{Value: node})
			}
		}
	}
}

// specField reports whether a key is a field of the tool of a call.
func (c *checker) specField(action *Action, key string) bool {
	spec := c.spec(c.toolOf(action))
	if spec == nil {
		return false
	}
	_, known := spec.field(key)
	return known
}

// checkSecretEntries looks at the value of a key, and at those below it.
func (c *checker) checkSecretEntries(entry *Entry) {
	node := entry.Value
	switch {
	case node == nil:
	case node.Template == nil && node.Entries == nil && node.Items == nil:
		c.checkSecretValue(node.Pos, entry.Key, node.Value)
	case node.Template != nil:
		if text, ok := node.Template.Literal(); ok {
			c.checkSecretValue(node.Pos, entry.Key, text)
		}
	}
	if node != nil {
		for _, inner := range node.Entries {
			c.checkSecretEntries(inner)
		}
		for _, item := range node.Items {
			c.checkSecretEntries(&Entry{Value: item})
		}
	}
}

// checkSecretValue warns of a text below a key for secrets. One that is short, or in angle
// brackets, is to be filled in.
func (c *checker) checkSecretValue(pos source.Position, key string, value any) {
	text, _ := value.(string)
	text = strings.TrimSpace(text)
	const shortest = 4
	if !slices.Contains(secretKeys, plainWord(key)) || len(text) < shortest || strings.HasPrefix(text, "<") || strings.Trim(text, "*x…") == "" {
		return
	}
	c.warnf(pos, codeLiteralSecret, "%s holds a secret that everybody who sees this file can use; keep it in a connection of the worker, and name that with auth", key)
}

// rendered stands for what an expression gives in an address that is only looked at.
const rendered = "_rendered_"

// checkSecretInURL warns of a password or a key that is written out in an address.
func (c *checker) checkSecretInURL(node *Node) {
	address, err := url.Parse(writtenURL(node))
	if err != nil {
		return
	}
	if password, has := address.User.Password(); has {
		c.checkWritten(node.Pos, "password", password)
	}
	for key, values := range address.Query() {
		for _, value := range values {
			c.checkWritten(node.Pos, key, value)
		}
	}
}

// writtenURL is the address as the file has it, with rendered for each expression.
func writtenURL(node *Node) string {
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

// checkWritten checks a value of an address, unless an expression gives a part of it.
func (c *checker) checkWritten(pos source.Position, key, value string) {
	if !strings.Contains(value, rendered) {
		c.checkSecretValue(pos, key, value)
	}
}
