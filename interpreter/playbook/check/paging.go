package check

import (
	"regexp"

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
// the first element.
func checkPaging(c *checker) {
	for _, step := range c.pb.CallSteps() {
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
