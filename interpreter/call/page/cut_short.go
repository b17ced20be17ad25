package page

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// A page that is empty, null or not JSON lacks the members by which a policy pages, so the policy's condition is
// false and the call ends as if this were the last page. Earlier pages, which had these members, show that
// something is wrong (docs/concepts/attempts.md#pages).

// PagedBy records which members of earlier pages made a policy request more; kept with the state of the call.
type PagedBy struct {
	Policy int `json:"policy"`
	// Had and Soft have one bit for each member that the condition names: in Had, whether an earlier page had it;
	// in Soft, whether APIs omit such a member on the last page, as they do with links and cursors.
	Had  uint64 `json:"had,omitempty"`
	Soft uint64 `json:"soft,omitempty"`
}

// mostMembers bounds the members of a condition that are examined: each page is searched for them, and an
// expression may name hundreds.
const mostMembers = 64

// RecordPaging records the members of a page by which a policy requests the next one.
func (p *Pages) RecordPaging(policy *playbook.Policy, page any) {
	paged := PagedBy{Policy: policy.Number}
	if before := p.PagedBy; before != nil && before.Policy == policy.Number {
		paged = *before
	}
	for i, ref := range pageMembers(policy) {
		value, _ := expression.FollowKeys(page, ref.Path)
		if value == nil {
			continue
		}
		paged.Had |= 1 << i
		if mayBeLeftOut(ref, value) || policy.When.Template.ProvidesForAbsence() {
			paged.Soft |= 1 << i
		}
	}
	p.PagedBy = &paged
}

// mayBeLeftOut reports whether APIs omit such a member on the last page: a cursor, a link, or a number that only
// identifies the next page. A missing flag or count has another cause.
func mayBeLeftOut(ref expression.Ref, value any) bool {
	switch value.(type) {
	case string, map[string]any:
		return true
	case bool, []any:
		return false
	}
	return ref.Bare
}

// pageMembers returns the members of the page that a policy's condition names.
func pageMembers(policy *playbook.Policy) []expression.Ref {
	var members []expression.Ref
	for _, ref := range policy.When.Refs() {
		switch {
		case ref.Root == "this" && len(ref.Path) > 1 && ref.Path[0] == "data":
			ref.Path = ref.Path[1:]
		case ref.Root != "response" && ref.Root != "page" && ref.Root != "data":
			continue
		}
		if len(ref.Path) > 0 && len(members) < mostMembers {
			members = append(members, ref)
		}
	}
	return members
}

// CutShort returns what is missing in a page that ended the call because no policy matched it. It returns "" if it
// looks like a last page, that is, has rows, or the members that the condition names. APIs often omit false
// members.
func (p *Pages) CutShort(policies Policies, page, contribution any) string {
	paged := p.PagedBy
	object, _ := page.(map[string]any)
	if paged == nil || len(object) > 0 && !gaveNothing(contribution) {
		return ""
	}
	var lacking []string
	for i, ref := range pageMembers(policies[paged.Policy-1]) {
		bit := uint64(1) << i
		if paged.Had&bit == 0 {
			continue
		}
		if _, has := expression.FollowKeys(page, ref.Path); len(object) > 0 && (has || paged.Soft&bit != 0) {
			continue
		}
		lacking = append(lacking, memberName(ref))
	}
	if len(lacking) == 0 {
		return ""
	}
	return fmt.Sprintf("lacks %s, by which policy %d requested more pages before (%s)",
		strings.Join(lacking, ", "), paged.Policy, pageShape(page))
}

// MissingMember returns which member the only page lacks that a policy compares to request the next one, "" for none.
// Every comparison with nil is false, so a misspelt member ends the call after the first page. Conditions of
// several parts, or with a fallback, allow for a missing member, and any list may lack an index.
func (p *Pages) MissingMember(policies Policies, page any) string {
	if p.PagedBy != nil {
		return ""
	}
	for _, policy := range policies {
		if policy.Then.NextCall == nil || policy.When == nil || !policy.When.Template.IsPlainComparison() {
			continue
		}
		for _, ref := range pageMembers(policy) {
			if value, _ := expression.FollowKeys(page, ref.Path); value == nil && !slices.ContainsFunc(ref.Path, isIndex) {
				return fmt.Sprintf("has no %s, which policy %d compares to request the next page (%s)", memberName(ref), policy.Number, pageShape(page))
			}
		}
	}
	return ""
}

// MisspeltMember describes a member that a policy names to request the next page, and that the only page lacks although it has another
// that is certainly meant; "" for none.
func (p *Pages) MisspeltMember(policies Policies, page any) string {
	if p.PagedBy != nil {
		return ""
	}
	for _, policy := range policies {
		if policy.Then.NextCall == nil || policy.When == nil || policy.When.Template == nil {
			continue
		}
		required := policy.When.Template.RequiredRefs()
		for _, ref := range pageMembers(policy) {
			isNamed := func(one expression.Ref) bool { return one.Offset == ref.Offset }
			if meant := meantMember(page, ref.Path); meant != "" && slices.ContainsFunc(required, isNamed) {
				return fmt.Sprintf("has no %s, which policy %d names to request the next page; it has %q", memberName(ref), policy.Number, meant)
			}
		}
	}
	return ""
}

// LacksPath describes the path of an optional collect that a page lacks, if the page has a name that is certainly meant, or if no page had
// the path and this one has rows elsewhere; "" otherwise. With rows, that is the path of the step's rows.
func (p *Pages) LacksPath(by *playbook.Collect, rows *playbook.RowPath, last any) string {
	if by == nil || !by.Optional || by.Path == "" && rows == nil {
		return ""
	}
	text, absent, path := by.Path, false, []any(nil)
	if rows != nil {
		found, missing := rowsOf(last, rows)
		text, absent, path = rows.Text, missing != "" && len(found) == 0, rows.Keys
	} else {
		_, found, err := expression.ValueAtPath(last, by.Path)
		absent = !found && err == nil
		if !strings.ContainsAny(by.Path, "[*") {
			for name := range strings.SplitSeq(by.Path, ".") {
				path = append(path, name)
			}
		}
	}
	if !absent {
		return ""
	}
	if meant := meantMember(last, path); meant != "" {
		return fmt.Sprintf("the page has no %q, which collect reads; it has %q, so nothing is collected from it", text, meant)
	}
	if content, isText := last.(string); isText && strings.TrimSpace(content) != "" && p.PagedBy == nil {
		return fmt.Sprintf("the page is a text without %q, which collect reads, so nothing is collected from it; it may be a web page, or have another format", text)
	}
	list, at, _ := longestListAt(nil, last, 0)
	if len(list) == 0 || by.Strategy != playbook.Append || p.CountElements() > 0 {
		return ""
	}
	shape := "is a list"
	if len(at) > 0 {
		shape = "has a list in " + memberName(expression.Ref{Root: "response", Path: at})
	}
	return fmt.Sprintf("no page has %q, which collect reads, although the last page %s, so nothing was collected", text, shape)
}

// meantMember returns the name that the first missing name of a path certainly means; "" for none. People rarely misspell the first
// letter, and next is not text.
func meantMember(value any, path []any) string {
	for _, key := range path {
		object, isMap := value.(map[string]any)
		name, isName := key.(string)
		if !isMap || !isName {
			return ""
		}
		inner, has := object[name]
		if !has {
			meant := expression.SuggestCertain(name, playbook.SortedKeys(object))
			if meant == "" || !strings.EqualFold(meant[:1], name[:1]) {
				return ""
			}
			return meant
		}
		value = inner
	}
	return ""
}

// pageSizes are common upper limits of APIs for the rows of a page.
var pageSizes = []int{10, 20, 25, 30, 40, 50, 60, 75, 100, 120, 150, 200, 250, 300, 400, 500, 1000, 2000, 2500, 5000, 10_000}

// BelowPageSize describes an only page that ended the call because it has fewer rows than a policy needs to request
// the next page, although that number is a common limit of APIs; "" for other pages. Many APIs return at most 100
// rows, whatever page size is requested. scope is called only for conditions that request pages.
func (p *Pages) BelowPageSize(policies Policies, scope func() expression.Scope, b *expression.Budget) string {
	if p.PagedBy != nil {
		return ""
	}
	for _, policy := range policies {
		if policy.Then.NextCall == nil || policy.When == nil || policy.When.Template == nil {
			continue
		}
		for _, length := range policy.When.Template.Lengths(scope(), b) {
			if length.Length < length.Wanted && slices.Contains(pageSizes, length.Length) {
				return fmt.Sprintf("ended the call, because %s is %d and policy %d requests the next page only if it is at least %d: if the API returns at most %d rows per page, "+
					"rows are missing; request pages until one is empty, or at most %d rows per page", length.Text, length.Length, policy.Number, length.Wanted,
					length.Length, length.Length)
			}
		}
	}
	return ""
}

func isIndex(key any) bool {
	_, is := key.(int)
	return is
}

func gaveNothing(contribution any) bool {
	switch contribution := contribution.(type) {
	case nil:
		return true
	case []any:
		return len(contribution) == 0
	case map[string]any:
		return len(contribution) == 0
	}
	return false
}

// plainMember matches names that can follow a dot in an expression.
var plainMember = regexp.MustCompile(`^[A-Za-z_]\w*$`)

func memberName(ref expression.Ref) string {
	name := ref.Root
	if name == "this" {
		name = "response"
	}
	for _, key := range ref.Path {
		switch text := expression.Text(key); {
		case isIndex(key):
			name += "[" + text + "]"
		case plainMember.MatchString(text):
			name += "." + text
		default:
			name += "['" + strings.ReplaceAll(text, "'", `\'`) + "']"
		}
	}
	return name
}
