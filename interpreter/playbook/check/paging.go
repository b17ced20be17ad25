package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/playbook"
)

var (
	// pageIndex matches _retry.index and what is done with it.
	pageIndex     = regexp.MustCompile(`^_retry\s*(?:\.\s*index|\[\s*['"]index['"]\s*\])(?:\s*\|\s*int)?\s*(\+\s*1\b|\*)`)
	timesBefore   = regexp.MustCompile(`\*\s*$`)
	offsetInURL   = regexp.MustCompile(`(?i)(?:offset|skip|start)[a-z_]*=[^&]*$`)
	offsetAsParam = regexp.MustCompile(`(?i)^\$?(?:offset|skip|start|start_?at|start_?index|from)$`)
)

// checkPaging warns about next_call that uses _retry.index as if it were 0 for the first page, like _loop.index for
// the first element, that drops parts of the body, and about pages that end at a number.
func checkPaging(c *checker) {
	for _, step := range c.pb.CallSteps() {
		checkNextBodies(c, step)
		checkPageLimit(c, step)
		for next := range step.NextCalls() {
			for _, node := range []*playbook.Node{next.Args, next.Params, next.Headers, next.URL, next.Body} {
				checkPageIndex(c, "", node)
			}
		}
	}
}

// checkPageIndex checks the templates in the value of a key.
func checkPageIndex(c *checker, key string, node *playbook.Node) {
	if node == nil {
		return
	}
	for _, item := range node.Items {
		checkPageIndex(c, key, item)
	}
	for _, entry := range node.Entries {
		checkPageIndex(c, entry.Key, entry.Value)
	}
	if node.Template == nil {
		return
	}
	text := []rune(node.Raw)
	for _, ref := range node.Template.Refs() {
		if member, _ := playbook.MemberAt(ref.Path, 0); ref.Root != "_retry" || member != "index" {
			continue
		}
		before, rest := string(text[:ref.Offset]), string(text[ref.Offset:])
		warnPageIndex(c, c.placeOf(node, ref.Offset), offsetAsParam.MatchString(key) || offsetInURL.MatchString(before), before, rest)
	}
}

func warnPageIndex(c *checker, pos place, offset bool, before, rest string) {
	done := pageIndex.FindStringSubmatch(rest)
	switch {
	case done != nil && done[1] != "*":
		c.Warnf(pos.sourcePosition(), codePageIndex, "_retry.index counts pages from 1, and _loop.index from 0: after the first page this is 2. If that is the next page, write _retry.page + 1; if the API counts pages from 0, write _retry.page")
	case offset && (done != nil || timesBefore.MatchString(before)):
		c.Warnf(pos.sourcePosition(), codePageIndex, "_retry.index counts pages from 1, and _loop.index from 0: after the first page it is 1. If that gives the offset of the next page, write _retry.page, which is unambiguous")
	}
}

// checkNextBodies warns about a body of next_call that replaces more of the first body than it says: only maps are
// merged, so the other members of a list's maps, or of a body that is text, would be missing from the second page on.
func checkNextBodies(c *checker, step *playbook.Step) {
	if step.Action == nil {
		return
	}
	first := c.pb.ResolveAction(step.Action).Field(playbook.FieldBody)
	if first == nil {
		return
	}
	for next := range step.NextCalls() {
		if next.Body == nil {
			continue
		}
		if isObjectText(first) && next.Body.Entries != nil {
			c.Warnf(next.Body.Pos, codeReplacedBody, "the body of the first request is text, so this body replaces all of it; write the body of the step as a map, and the two are merged")
			continue
		}
		checkReplacedLists(c, first, next.Body, playbook.FieldBody)
	}
}

// isObjectText reports whether a body is a text that contains a JSON object.
func isObjectText(body *playbook.Node) bool {
	_, isText := body.Value.(string)
	single := false
	if body.Template != nil {
		_, single = body.Template.SingleProgram()
	}
	return (isText || body.Template != nil && !single) && strings.HasPrefix(strings.TrimSpace(body.Raw), "{") && !strings.HasPrefix(strings.TrimSpace(body.Raw), "{{")
}

// checkReplacedLists compares the lists of two bodies at the same place. A map in the second list that has only some of
// the keys of the one in the first is meant to change these.
func checkReplacedLists(c *checker, first, next *playbook.Node, path string) {
	for _, entry := range next.Entries {
		if under := first.Get(entry.Key); under != nil {
			checkReplacedLists(c, under, entry.Value, path+"."+entry.Key)
		}
	}
	for i := range min(len(first.Items), len(next.Items)) {
		var lost []string
		for _, entry := range first.Items[i].Entries {
			if next.Items[i].Get(entry.Key) == nil {
				lost = append(lost, entry.Key)
			}
		}
		has := func(entry *playbook.Entry) bool { return first.Items[i].Get(entry.Key) != nil }
		if len(lost) > 0 && len(next.Items[i].Entries) > 0 && slices.ContainsFunc(next.Items[i].Entries, has) {
			c.Warnf(next.Items[i].Pos, codeReplacedBody, "this list replaces the list %s of the first request, so from the second page on the request lacks %s; repeat them here",
				path, strings.Join(lost, ", "))
			return
		}
	}
}

var (
	// pageLimit matches a comparison that is true until a page with a fixed number, pageEnd one that is true from it on.
	pageLimit = regexp.MustCompile(pageCount + `(?:<=?|!=)` + fixedNumber)
	pageEnd   = regexp.MustCompile(pageCount + `(?:>=?|==)` + fixedNumber)
)

const (
	pageCount   = `_retry\s*\.\s*(?:page|index|count)\s*`
	fixedNumber = `\s*(\d+|workload\.\w+|[A-Za-z_]\w*)\s*(?:$|[^\w\s.(]|\b(?:and|or)\b)`
)

// checkPageLimit warns about a step whose condition ends the pages at a number, if what it has read by then counts as
// everything. Pages that end at max_attempts do not.
func checkPageLimit(c *checker, step *playbook.Step) {
	harm := c.harmOfUnreadPages(step)
	if harm == "" || step.Incremental != nil && (step.Incremental.Ascending || step.Incremental.CursorPath == "") {
		return
	}
	for _, policy := range step.Retry {
		if policy.Then.NextCall == nil || policy.Then.Collect != nil && len(policy.Then.Collect.MergeBy) > 0 {
			continue
		}
		for _, one := range []struct {
			condition *playbook.Node
			limit     *regexp.Regexp
		}{{policy.When, pageLimit}, {policy.StopWhen, pageEnd}} {
			if one.condition == nil {
				continue
			}
			match := one.limit.FindStringSubmatch(one.condition.Raw)
			if match == nil || !c.isFixed(match[1]) {
				continue
			}
			c.Warnf(one.condition.Pos, codeUnreadPages, "this condition ends the pages at a number, and the call counts as complete, so %s; %s", harm, limitHint(step, match[1]))
			return
		}
	}
}

// isFixed reports whether an operand is a number, or a key of the workload.
func (c *checker) isFixed(operand string) bool {
	_, isKey := c.workload[operand]
	return isKey || aNumber.MatchString(operand) || strings.HasPrefix(operand, "workload.")
}

// limitHint says how pages can end at a number without harm.
func limitHint(step *playbook.Step, number string) string {
	limit := "max_attempts"
	if aNumber.MatchString(number) {
		limit += ": " + number
	}
	if step.Incremental == nil {
		return fmt.Sprintf("end them with %s, after which no row is deleted", limit)
	}
	return fmt.Sprintf("end them with %s, after which the watermark stays, or set row_order: asc if the rows arrive in the order of %s", limit, step.Incremental.CursorPath)
}
