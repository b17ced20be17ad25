package playbook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// useWord refers to a named list of policies: docs/concepts/runs.md#workbook-and-named-policies.
const useWord = "use"

// Lent is the origin of a policy that a retry takes from elsewhere: a list in the playbook's policies, or the retry
// of a workbook entry.
type Lent struct {
	From   string // such as "policies.api"
	Number int    // number there, from 1; 0 if it is the only one
}

// OriginText returns the origin of a policy, for messages with its number: " (policies.api[2])"; "" for a policy written
// in the retry itself.
func (p *Policy) OriginText() string {
	if p.Lent == nil {
		return ""
	}
	if p.Lent.Number == 0 {
		return fmt.Sprintf(" (%s)", p.Lent.From)
	}
	return fmt.Sprintf(" (%s[%d])", p.Lent.From, p.Lent.Number)
}

// lentList is a list of policies that other places use.
type lentList struct {
	name string // name of the list or of the workbook entry
	from string // its name in messages
	pos  source.Position
	node *yaml.Node // nil if it could not be read
	tool string     // tool of the entry
	used bool
	uses []listUse
}

// listUse is a place where a step uses a list.
type listUse struct {
	place string
	pos   source.Position
}

// lending is what the decoder knows about lists of policies that retries use.
type lending struct {
	lists, entries []*lentList // lists in policies, and retries of workbook entries
	using          []string    // lists that are currently being read
	usedHere       []string    // all lists used so far
}

// readPolicyLists reads `policies`. Lists are read first, because they may be defined after their uses. Each is
// decoded once by itself, so that problems are reported even if it is unused, and again for every use.
func readPolicyLists(d *decoder, n *yaml.Node) {
	if n == nil || isNull(n) || d.broken[n] {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.Errorf(positionOf(n), codeWrongType, "policies must be a map of names and lists of policies, not %s", describeYAML(n))
		return
	}
	for name, value := range yamltree.Pairs(n) {
		list := &lentList{name: name.Value, from: "policies." + name.Value, pos: positionOf(name)}
		d.lent.lists = append(d.lent.lists, list)
		if items, ok := d.readItems(value, list.from); ok && len(items) == 0 {
			d.Errorf(positionOf(value), codeEmpty, "%s has no policies; write at least one, such as - when: \"{{ error.class == 'retryable' }}\"", list.from)
		} else if ok {
			list.node = value
		}
	}
	for _, list := range d.lent.lists {
		if list.node != nil {
			d.lent.using = []string{list.name}
			readPolicies(d, list.node, list.from)
			d.lent.using = nil
		}
	}
}

// useOf returns the name that an item of a retry uses; false if the item is a policy. An invalid use is reported,
// and returned with the name "".
func (d *decoder) useOf(item *yaml.Node) (name *yaml.Node, isUse bool) {
	if item.Kind != yaml.MappingNode || d.broken[item] {
		return nil, false
	}
	for key, value := range yamltree.Pairs(item) {
		if key.Value == useWord {
			name, isUse = value, true
		}
	}
	if !isUse {
		return nil, false
	}
	for key := range yamltree.Pairs(item) {
		if key := key; key.Value != useWord {
			d.Errorf(positionOf(key), CodeConflict, "%q cannot be combined with use, which includes a whole list; make it a separate policy, - %s: …", ShortenText(key.Value), ShortenText(key.Value))
			return nil, true
		}
	}
	if name.Kind == yaml.AliasNode {
		name = name.Alias
	}
	if text, ok := d.readName(name, useWord); !ok || text == "" {
		return nil, true
	}
	return name, true
}

// readUsedPolicies returns the policies of the list that a use names, numbered after those before it.
func readUsedPolicies(d *decoder, name *yaml.Node, place string, before int) []*Policy {
	list := d.listOf(name)
	switch {
	case list == nil || list.node == nil:
		return nil
	case slices.Contains(d.lent.using, list.name):
		circle := append(slices.Clone(d.lent.using[slices.Index(d.lent.using, list.name):]), list.name)
		d.Errorf(positionOf(name), codeCircularUse, "policies.%s uses itself: %s", list.name, strings.Join(circle, " → "))
		return nil
	}
	list.used = true
	known := slices.ContainsFunc(list.uses, func(use listUse) bool { return use.pos == positionOf(name) })
	if len(d.lent.using) == 0 && !known {
		list.uses = append(list.uses, listUse{place: place, pos: positionOf(name)})
	}
	d.lent.usedHere = append(d.lent.usedHere, list.name)
	d.lent.using = append(d.lent.using, list.name)
	defer func() { d.lent.using = d.lent.using[:len(d.lent.using)-1] }()
	return d.lendPolicies(list, readPoliciesFrom(d, list.node, place, before))
}

// lendPolicies marks policies with the list that they come from. Policies that the list itself takes from another
// one keep that mark.
func (d *decoder) lendPolicies(list *lentList, policies []*Policy) []*Policy {
	for i, policy := range policies {
		policy.Lent = cmp.Or(policy.Lent, &Lent{From: list.from, Number: i + 1})
	}
	return policies
}

// listOf returns the list with a name, and reports an unknown name.
func (d *decoder) listOf(name *yaml.Node) *lentList {
	var names []string
	for _, list := range d.lent.lists {
		if list.name == name.Value {
			return list
		}
		names = append(names, list.name)
	}
	wanted := ShortenText(name.Value)
	switch near := expression.Suggest(name.Value, names); {
	case near != "":
		d.Errorf(positionOf(name), codeUnknownPolicies, "policies has no list %q; did you mean %q?", wanted, near)
		d.AddFix(name.Value, expression.SuggestCertain(name.Value, names))
	case len(names) == 0:
		d.Errorf(positionOf(name), codeUnknownPolicies, "there is no list %q: the playbook has no policies; write them at its top level, such as policies: {%s: [{when: …, then: …}]}", wanted, wanted)
	default:
		d.Errorf(positionOf(name), codeUnknownPolicies, "policies has no list %q; its lists are %s", wanted, JoinNames(names))
	}
	return nil
}

// readEntryRetry reads the retry of a workbook entry, which its steps use.
func readEntryRetry(d *decoder, w written, entry *Action) {
	list := &lentList{
		name: entry.Name, from: "workbook." + entry.Name + ".retry", pos: positionOf(w.node), node: w.node, tool: literalTool(entry), used: true,
	}
	readRetry(d, w.node, list.from, list.tool)
	if slices.ContainsFunc(d.lent.entries, func(other *lentList) bool { return other.name == entry.Name }) {
		return // belongs to another entry with that name, which is reported
	}
	d.lent.entries = append(d.lent.entries, list)
}

// lendRetry gives steps without a retry the retry of the workbook entry that they call.
func (d *decoder) lendRetry(pb *Playbook) {
	for _, step := range pb.Steps {
		if step.ownRetry || step.Action == nil || literalTool(step.Action) != WorkbookTool {
			continue
		}
		name, _ := step.Action.EntryName()
		for _, list := range d.lent.entries {
			if list.name == name && name != "" {
				list.uses = append(list.uses, listUse{place: step.Name, pos: step.NamePos})
				step.Retry = d.lendPolicies(list, readRetry(d, list.node, step.Name+".retry", list.tool))
			}
		}
	}
}

// usedLists returns the lists that an inline playbook has used since a point.
func (d *decoder) usedLists(before int) *yaml.Node {
	names := d.lent.usedHere[before:]
	if len(names) == 0 {
		return nil
	}
	lists := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, list := range d.lent.lists {
		if slices.Contains(names, list.name) {
			key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: list.name}
			lists.Content = append(lists.Content, key, yamltree.WithoutAliases(list.node, false))
		}
	}
	return lists
}

// endPosition returns the position of the last node inside n.
func endPosition(n *yaml.Node) source.Position {
	last := positionOf(n)
	for _, inner := range n.Content {
		if at := endPosition(inner); last.Before(at) {
			last = at
		}
	}
	return last
}

// UnusedPolicies returns the lists of policies that no retry uses.
func (pb *Playbook) UnusedPolicies() []HeadName {
	unused := lists.Filter(pb.lent, func(list *lentList) bool { return !list.used })
	return lists.Map(unused, func(list *lentList) HeadName { return HeadName{"policies", list.name, list.pos} })
}

// NameUses adds to each problem in a shared list of policies where the list is used, since the problem may exist
// only there.
func (pb *Playbook) NameUses(found source.Diagnostics) {
	for i := range found {
		for _, list := range pb.lent {
			if list.node == nil || len(list.uses) == 0 {
				continue
			}
			if at := found[i].Pos; !at.Before(positionOf(list.node)) && !endPosition(list.node).Before(at) {
				found[i].Message += list.listUsers()
			}
		}
	}
}

// listUsers lists the places that use a list.
func (l *lentList) listUsers() string {
	const shown = 3
	uses := lists.Map(l.uses[:min(len(l.uses), shown)], func(use listUse) string { return fmt.Sprintf("%s on line %d", use.place, use.pos.Line) })
	if more := len(l.uses) - shown; more > 0 {
		uses = append(uses, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf(" (%s is used by %s)", l.from, strings.Join(uses, ", "))
}
