package migrate

import (
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/playbook"
	"reprise/interpreter/yamltree"
)

// requestSite is a request in the older form {kind: Webhook, params: {…}}.
type requestSite struct {
	node, newer *yaml.Node
	kind        *yaml.Node // the value of kind
	flow        bool       // whether it is in brackets
}

// migrateRequests rewrites every request in the older form, of notices and of on_start, one after the other.
func (m *migrator) migrateRequests() {
	left := 0 // that could not be rewritten
	for _, site := range sitesOf(m.root).requests {
		if m.rewriteRequest(left) {
			m.addChange(yamltree.PositionOf(site.kind), "kind: "+site.kind.Value+" with params becomes the fields of a request")
			continue
		}
		left++
		m.addProblem(yamltree.PositionOf(site.kind), playbook.CodeNotMigrated,
			"this older form of a request cannot be rewritten in this position; write {url: …, method: POST} by hand")
	}
}

func (m *migrator) rewriteRequest(number int) bool {
	return m.rewriteText(func(e extent, root *yaml.Node) ([]edit, bool) {
		site := sitesOf(root).requests[number]
		start, end := e.startOffset(site.node), e.endOffset(site.node)
		if start < 0 || end < start || len(site.newer.Content) == 0 {
			return nil, false
		}
		text := e.requestText(site, start, end)
		*site.node = *site.newer
		return []edit{{start, end, text}}, true
	})
}

// requestText returns the newer form of a request. Comments without a place in it go above.
func (e extent) requestText(site requestSite, start, end int) string {
	newer := yamltree.WithoutAliases(site.newer, true)
	if site.flow {
		newer.Style = yaml.FlowStyle
		dropComments(newer)
		return strings.TrimSpace(yamltree.EncodeNode(newer))
	}
	if first := newer.Content[1]; first.Kind == yaml.ScalarNode && first.LineComment == "" {
		first.LineComment = site.kind.LineComment
	}
	breaks := lineBreak([]byte(e.text))
	lines := separateComments(newer, site.node, e.text[start:end], false)
	text := strings.Join(append(lines, yamltree.EncodeNode(newer)), "\n")
	return strings.TrimLeft(indentBlock(text, site.node.Column-1, breaks), " ")
}
