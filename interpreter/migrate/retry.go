package migrate

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// retrySite is a retry key of a file.
type retrySite struct {
	parent     *yaml.Node // the map that contains the key
	at         int        // index of the value in parent.Content
	key, value *yaml.Node
	tool       string
	flow       bool // whether it is inside brackets
}

// migrateRetries rewrites every older form of retry, nested ones first. Sites are identified by their numbers:
// rewriting changes neither their number nor their order.
func (m *migrator) migrateRetries() {
	original := sitesOf(m.root).retries
	for _, round := range m.retryRounds(newExtent(m.file), original) {
		if m.rewriteRetries(round, false) {
			m.reportRetries(original, round)
			continue
		}
		// If one of them fails, find out which.
		for _, number := range round {
			one := []int{number}
			if m.rewriteRetries(one, false) || m.rewriteRetries(one, true) {
				m.reportRetries(original, one)
			} else {
				m.notMigrated(yamltree.PositionOf(original[number].key))
			}
		}
	}
	m.behindAliases(original)
}

func (m *migrator) reportRetries(original []retrySite, numbers []int) {
	for _, number := range numbers {
		m.addChange(yamltree.PositionOf(original[number].value), "an older form of retry becomes the list of policies")
	}
}

// retryRounds groups the sites to rewrite by rounds, so that no site of a round contains one of a later round.
func (m *migrator) retryRounds(e extent, original []retrySite) [][]int {
	var rounds [][]int
	var open []int // ends of the sites around the one at hand
	for number, site := range original {
		if resolveAlias(site.value).Kind == yaml.SequenceNode {
			continue
		}
		pos, end := yamltree.PositionOf(site.key), e.endOffset(site.value)
		if end < 0 || aliasHasSections(site) {
			m.notMigrated(pos)
			continue
		}
		if m.isBroken(pos, source.Position{Line: e.lineAt(end), Column: 1 << 20}) {
			continue // the problem is reported, and the section is unchanged
		}
		for len(open) > 0 && open[len(open)-1] <= e.startOffset(site.key) {
			open = open[:len(open)-1]
		}
		open = append(open, end)
		for len(rounds) < len(open) {
			rounds = append(rounds, nil)
		}
		rounds[len(open)-1] = append(rounds[len(open)-1], number)
	}
	slices.Reverse(rounds)
	return rounds
}

// aliasHasSections reports whether an alias refers to a form with further sections in it: expanding it would change
// their number.
func aliasHasSections(site retrySite) bool {
	if site.value.Kind != yaml.AliasNode {
		return false
	}
	inside := &sites{}
	inside.visitRetry(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{site.key, site.value.Alias}}, "", false)
	return len(inside.retries) > 1
}

// behindAliases reports older forms that are defined elsewhere, to which a retry only refers.
func (m *migrator) behindAliases(original []retrySite) {
	seen := map[source.Position]bool{}
	for _, site := range original {
		seen[yamltree.PositionOf(site.value)], seen[yamltree.PositionOf(resolveAlias(site.value))] = true, true
	}
	for _, step := range stepsOf(m.root) {
		if p := playbook.PaginationOf(resolveAlias(yamltree.KeyValues(step.node)["loop"])); p != nil {
			seen[yamltree.PositionOf(p.Key)] = true // see pagination.go
		}
	}
	for _, d := range m.found {
		if d.Code == playbook.CodeLegacyRetry && d.Severity == source.Warning && !seen[d.Pos] {
			m.notMigrated(d.Pos)
		}
	}
}

func (m *migrator) notMigrated(pos source.Position) {
	m.addProblem(pos, playbook.CodeNotMigrated, "this older form of retry cannot be rewritten in this position, because of an alias, a comment or the way it is written; write the list by hand")
}

// resolveAlias returns the node that an alias stands for, or the node itself.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// rewriteRetries replaces some sections at once. Comments stay beside their words; with plain, all of them go above
// the list.
func (m *migrator) rewriteRetries(numbers []int, plain bool) bool {
	return m.rewriteText(func(e extent, root *yaml.Node) (edits []edit, ok bool) {
		found := sitesOf(root).retries
		for _, number := range numbers {
			site := found[number]
			written := yamltree.WithoutAliases(site.value, true)
			list := playbook.OlderRetry(e.file, written, site.tool)
			if list == nil {
				return nil, false
			}
			edit, ok := e.retryEdit(site, written, list, plain)
			if !ok {
				return nil, false
			}
			edits = append(edits, edit)
			site.parent.Content[site.at] = list
		}
		return edits, true
	})
}

// retryEdit returns the edit that replaces the value of a retry key by the list.
func (e extent) retryEdit(site retrySite, written, list *yaml.Node, plain bool) (edit, bool) {
	colon, start, end := e.valueOffset(site.key), e.startOffset(site.value), e.endOffset(site.value)
	if colon < 0 || start < colon || end < 0 {
		return edit{}, false
	}
	if site.flow {
		flowList(list)
		dropComments(list)
		return edit{start, end, strings.TrimSpace(yamltree.EncodeNode(list))}, true
	}
	block := site.value.Kind == yaml.MappingNode && site.value.Style&yaml.FlowStyle == 0
	lastLine := e.lineEnd(e.lineAt(end))
	line := e.lineEnd(site.key.Line) // line of the key
	beside := e.text[end:lastLine]   // the comment after a value in brackets
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
	lines := separateComments(list, written, inside, plain)
	playbook.StyleList(list)
	if len(list.Content) == 0 {
		return edit{colon, lastLine, " []" + beside}, len(lines) == 0
	}
	text := yamltree.EncodeNode(list)
	if len(lines) > 0 {
		text = strings.Join(lines, "\n") + "\n" + text
	}
	broken := lineBreak([]byte(e.text))
	return edit{colon, lastLine, strings.TrimRight(beside, " \t") + broken + indentBlock(text, site.key.Column-1+2, broken)}, true
}

// separateComments keeps in the list the comments that belong to the section, and returns those without a place in it.
func separateComments(list, written *yaml.Node, inside string, plain bool) []string {
	wanted := lists.Filter(commentLines(written), func(line string) bool { return strings.Contains(inside, line) })
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

// filterComments drops the comments that are not in a text: the parser attaches comments after a section to the
// section's last node.
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
