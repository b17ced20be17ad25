package playbook

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
)

// retrySite is one retry key of a file.
type retrySite struct {
	parent     *yaml.Node // the map that has the key
	at         int        // index of the value in parent.Content
	key, value *yaml.Node
	tool       string
	flow       bool // it stands inside of brackets
}

// retries rewrites every older form of retry, from the last to the first, so
// that the places of those to come stay what they are in the original.
func (m *migrator) retries() {
	file, root := m.current()
	if root == nil {
		return
	}

	var sites []retrySite

	for _, site := range retrySites(root) {
		if target(site.value).Kind != yaml.SequenceNode {
			sites = append(sites, site)
		}
	}

	slices.SortFunc(sites, func(a, b retrySite) int {
		if position(a.key).Before(position(b.key)) {
			return 1
		}

		return -1
	})

	seen := map[source.Position]bool{}
	extents := newExtent(file)

	for _, site := range sites {
		pos := position(site.key)
		seen[position(site.value)], seen[position(target(site.value))] = true, true

		switch end := extents.end(site.value); {
		case end < 0:
			m.notMigrated(pos)
		case m.broken(pos, source.Position{Line: extents.lineAt(end), Column: 1 << 20}):
			// The problem is reported; the section stays.
		case m.retryAt(pos):
			m.changed(position(site.value), "an older form of retry becomes the list of policies")
		default:
			m.notMigrated(pos)
		}
	}

	for _, d := range m.found {
		if d.Code == CodeLegacyRetry && d.Severity == source.Warning && !seen[d.Pos] {
			m.notMigrated(d.Pos)
		}
	}
}

func (m *migrator) notMigrated(pos source.Position) {
	m.problem(pos, CodeNotMigrated, "this older form of retry cannot be rewritten where it stands, because of an alias, a comment or the way it is written; write the list by hand")
}

// target is what a node stands for.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}

	return n
}

// retryAt rewrites the section whose key stands at a place.
func (m *migrator) retryAt(pos source.Position) bool {
	for _, plain := range []bool{false, true} {
		file, root := m.current()
		if root == nil {
			return false
		}

		for _, site := range retrySites(root) {
			if position(site.key) == pos && m.rewrite(file, root, site, plain) {
				return true
			}
		}
	}

	return false
}

// rewrite replaces one section. Comments stay beside the words that they stand
// at; with plain they all stand above the list.
func (m *migrator) rewrite(file *source.File, root *yaml.Node, site retrySite, plain bool) bool {
	d := &decoder{file: file, broken: map[*yaml.Node]bool{}, older: true}

	written := resolved(site.value, true)

	list := d.legacyRetry(written, site.tool)
	if list == nil {
		return false
	}

	all := commentLines(root)
	e := newExtent(file)

	text, ok := e.retryText(site, written, list, plain)
	if !ok {
		return false
	}

	site.parent.Content[site.at] = list

	return m.accept(text, root, all)
}

// retryText is the file with the value of a retry key replaced by the list.
func (e extent) retryText(site retrySite, written, list *yaml.Node, plain bool) (string, bool) {
	colon, start, end := e.afterColon(site.key), e.start(site.value), e.end(site.value)
	if colon < 0 || start < colon || end < 0 {
		return "", false
	}

	if site.flow {
		flowList(list)
		dropComments(list)

		return e.text[:start] + strings.TrimSpace(encode(list)) + e.text[end:], true
	}

	block := site.value.Kind == yaml.MappingNode && site.value.Style&yaml.FlowStyle == 0
	lastLine := e.lineEnd(e.lineAt(end))
	line := e.lineEnd(site.key.Line) // of the key

	beside := e.text[end:lastLine] // the comment behind a value in brackets
	if start > line {
		beside = e.text[colon:line]
		if !block {
			beside += e.text[end:lastLine]
		}
	}

	inside := e.text[max(colon, min(line, start)):end]
	if block {
		inside = e.text[line:lastLine]
	}

	lines := keepComments(list, written, inside, plain)
	styleList(list)

	if len(list.Content) == 0 {
		return e.text[:colon] + " []" + beside + e.text[lastLine:], len(lines) == 0
	}

	broken := lineBreak([]byte(e.text))
	text := strings.Join(lines, "\n")

	if text != "" {
		text += "\n"
	}

	text += encode(list)

	return e.text[:colon] + strings.TrimRight(beside, " \t") + broken +
		indentBlock(text, site.key.Column-1+2, broken) + e.text[lastLine:], true
}

// keepComments leaves in the list the comments that stand in the section, and
// returns those that have no place in it.
func keepComments(list, written *yaml.Node, inside string, plain bool) []string {
	var wanted []string

	for _, line := range commentLines(written) {
		if strings.Contains(inside, line) {
			wanted = append(wanted, line)
		}
	}

	if plain {
		dropComments(list)
		return wanted
	}

	filterComments(list, inside)

	for _, line := range commentLines(list) {
		if i := slices.Index(wanted, line); i >= 0 {
			wanted = slices.Delete(wanted, i, i+1)
		}
	}

	return wanted
}

func dropComments(n *yaml.Node) { filterComments(n, "") }

// filterComments drops the comments that do not stand in a text: the parser
// gives what follows a section to the section's last node.
func filterComments(n *yaml.Node, text string) {
	for _, comment := range []*string{&n.HeadComment, &n.LineComment, &n.FootComment} {
		for line := range strings.Lines(*comment) {
			if !strings.Contains(text, strings.TrimSpace(line)) {
				*comment = ""
				break
			}
		}
	}

	for _, inner := range n.Content {
		filterComments(inner, text)
	}
}
