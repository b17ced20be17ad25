package page

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// An answer may say that there is more where nothing asks whether it does: a misspelt member in a condition, or no policy
// that pages at all. Then the first page is taken for all.

// Unread looks for that in the answer with which a call ends.
type Unread struct {
	Policies Policies
	// Conditions are the paths into the answer that conditions of this step and of later ones read; an empty path
	// reads everything.
	Conditions []expression.Ref
	Answer     any
	NextLink   string // of the header Link
	// Status is the status of the answer, 0 where it has none; ContentRange its header of that name, "" for none.
	Status       int
	ContentRange string
	LinksRead    bool // a condition reads the headers or links
	// Rows are the rows that the call has read so far, -1 where that is not known.
	Rows int
}

// found is a member that says whether there is more.
type found struct {
	path []any
	what sign
	more bool
}

// sign is how a member says so.
type sign int

const (
	signFlag sign = iota + 1
	signNext
	signTotal
)

// Says returns a sign of further pages in the answer that no condition reads, with a fix; "" for none. A sign that
// the answer is complete is trusted, as is a total that a condition reads and that the rows have reached. If a
// condition reads one sign of further pages, the author has decided.
func (u Unread) Says() string {
	signs := u.findSigns(nil, u.Answer)
	for _, one := range signs {
		if !one.more && (one.what == signFlag || one.what == signTotal && u.isRead(one.path)) {
			return ""
		}
		if one.more && u.isRead(one.path) {
			return ""
		}
	}
	for _, one := range signs {
		if !one.more {
			continue
		}
		value, _ := expression.Walk(u.Answer, one.path)
		name := memberName(expression.Ref{Root: "response", Path: one.path})
		text := fmt.Sprintf("the response has %s, which no condition uses: there are more pages", name)
		if one.what == signTotal {
			text = fmt.Sprintf("%s is %s, but %d were read, and no condition uses it: there are more pages", name, expression.Text(totalOf(value)), u.Rows)
		}
		return text + u.fixText(one, name)
	}
	if u.NextLink != "" && !u.LinksRead {
		return "the response has a header Link with a next page, which no condition uses: there are more pages" +
			u.fixText(found{}, "this.meta.links.next is defined")
	}
	if part := u.partText(); part != "" && !u.LinksRead {
		return part + ", which no condition uses: there are more pages" + u.fixText(found{}, "len(page) > 0")
	}
	return ""
}

// rowRange matches a header Content-Range of rows: its last figures are the index of the last row, and how many there are
// (RFC 9110, section 14.4, has it for any unit; some APIs write none).
var rowRange = regexp.MustCompile(`^(?:\w+[ =])?\d+-(\d+)/(\d+|\*)$`)

// partText says that an answer is a part of all rows by its status or its header Content-Range; "" where it does not say so, or where
// its rows are the last.
func (u Unread) partText() string {
	if parts := rowRange.FindStringSubmatch(strings.TrimSpace(u.ContentRange)); parts != nil && parts[2] != "*" {
		last, _ := strconv.Atoi(parts[1])
		total, _ := strconv.Atoi(parts[2])
		if last+1 >= total {
			return ""
		}
		return fmt.Sprintf("the response has a header Content-Range of %s", strings.TrimSpace(u.ContentRange))
	}
	pages := slices.ContainsFunc(u.Policies, func(policy *playbook.Policy) bool { return policy.Then.NextCall != nil })
	if u.Status != http.StatusPartialContent || pages {
		return ""
	}
	return "the response has the status 206 (partial content)"
}

// fixText is what to write. A condition may read a member that the answer lacks, and mean this one.
func (u Unread) fixText(one found, name string) string {
	var pages *playbook.Policy
	for _, policy := range u.Policies {
		if policy.Then.NextCall == nil {
			continue
		}
		pages = policy
		for _, ref := range pageMembers(policy) {
			if value, _ := expression.Walk(u.Answer, ref.Path); value == nil && len(one.path) > 0 && plainName(ref.Path) == plainName(one.path) {
				return fmt.Sprintf("; policy %d uses %s, which it does not have: did you mean %s?", policy.Number, memberName(ref), name)
			}
		}
	}
	if pages != nil {
		return fmt.Sprintf("; use it in the `when` of policy %d (line %d, column %d)", pages.Number, pages.When.Pos.Line, pages.When.Pos.Column)
	}
	if one.what == signTotal {
		name = "len(pages) < " + name
	}
	return fmt.Sprintf("; write a policy with when: \"{{ %s }}\", next_call and collect", name)
}

// isRead reports whether a condition reads a member, what it is in, or what is in it.
func (u Unread) isRead(path []any) bool {
	return slices.ContainsFunc(u.Conditions, func(ref expression.Ref) bool {
		n := min(len(ref.Path), len(path))
		return slices.Equal(ref.Path[:n], path[:n])
	})
}

// mostLevels is how deep an answer is searched for a sign that there are more pages. Deeper
// members are about rows and not about the answer.
const mostLevels = 4

// findSigns finds the members of maps that show that there are more pages, in the order of their
// keys. Lists are skipped: their members are rows.
func (u Unread) findSigns(path []any, value any) []found {
	object, isMap := value.(map[string]any)
	if !isMap || len(path) > mostLevels {
		return nil
	}
	var signs []found
	for _, key := range playbook.SortedKeys(object) {
		at := append(slices.Clone(path), key)
		one := found{path: at}
		switch name, member := plainName(at[len(path):]), object[key]; {
		case slices.Contains(moreFlags, name) && isFlag(member):
			one.what, one.more = signFlag, expression.Truthy(member) && member != "false"
		case slices.Contains(endFlags, name) && isFlag(member) && expression.Truthy(member) && member != "false":
			one.what = signFlag
		case slices.Contains(totals, name) && totalOf(member) != nil:
			if u.Rows <= 0 {
				continue
			}
			one.what, one.more = signTotal, exceedsRows(totalOf(member), u.Rows)
		case nextName.MatchString(name) && leadsOn(member) && hasRows(u.Answer, 0):
			one.what, one.more = signNext, true
		default:
			signs = append(signs, u.findSigns(at, member)...)
			continue
		}
		signs = append(signs, one)
	}
	return signs
}

var (
	moreFlags = []string{"hasmore", "hasnextpage", "hasnext", "more", "morerecords", "hasmoreitems", "istruncated", "moreresults", "moreitems", "moreavailable", "hasmoreresults", "hasmorepages"}
	endFlags  = []string{"islast", "islastpage", "last", "done", "complete", "isdone", "finished", "endofrecords", "endofstream"} // where they are true
	totals    = []string{
		"total", "totalcount", "totalresults", "totalitems", "totalrecords", "totalelements", "totalsize", "totalhits", "totalrows", "numfound", "count", "recordcount", "resultcount",
	}
	// nextName finds members that lead to another page, and none about times, or what was before.
	nextName = regexp.MustCompile(`^(odata)?next(page|pages|link|url|uri|href|cursor|token|offset|start|skip|index|marker|key|records|results|batch|from|after|position|continuation)*$|` +
		`^(end|after|next|page|scroll|result)?cursor$|^(page|continuation|pagination|next|nextcontinuation|scroll|skip|resumption)token$`)
)

// plainName is the last name of a path without what spellings differ in.
func plainName(path []any) string {
	name, _ := path[len(path)-1].(string)
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}

func isFlag(value any) bool {
	switch value := value.(type) {
	case bool:
		return true
	case int:
		return value == 0 || value == 1
	case string:
		return value == "true" || value == "false"
	}
	return false
}

// leadsOn reports whether a value leads to another page: a text, a number, or a map with one of these.
func leadsOn(value any) bool {
	switch value := value.(type) {
	case string:
		return value != "" && value != "false" && value != "null"
	case int, float64:
		return expression.Truthy(value)
	case map[string]any:
		//workflowcheck:ignore whether there is any
		for _, member := range value {
			if _, isText := member.(string); isText && leadsOn(member) {
				return true
			}
		}
	}
	return false
}

// totalOf is the number of all rows that a member says, nil for none.
func totalOf(value any) any {
	switch value := value.(type) {
	case int:
		return value
	case string:
		if n, err := strconv.Atoi(value); err == nil {
			return n
		}
	case map[string]any:
		if n, isInt := value["value"].(int); isInt {
			return n
		}
	}
	return nil
}

// exceedsRows reports whether a total is more than what was read.
func exceedsRows(total any, rows int) bool {
	n, _ := total.(int)
	return n > rows
}

// hasRows reports whether an answer holds a list with something in it, outside of lists.
func hasRows(value any, level int) bool { return LongestList(value, level) > 0 }

// LongestList is the length of the longest list in an answer, outside of lists; -1 for none.
func LongestList(value any, level int) int {
	longest := -1
	switch value := value.(type) {
	case []any:
		return len(value)
	case map[string]any:
		if level > mostLevels {
			break
		}
		//workflowcheck:ignore the longest is the same in any order
		for _, member := range value {
			longest = max(longest, LongestList(member, level+1))
		}
	}
	return longest
}
