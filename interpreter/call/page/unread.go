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

// A response may indicate further pages although nothing reads that: the condition misspells a member, or no policy
// pages at all. Then the first page would be taken for all data.

// Unread looks for such signs in the response with which a call ends.
type Unread struct {
	Policies Policies
	// Conditions are the paths into the response that conditions of this and later steps read; an empty path reads
	// everything.
	Conditions []expression.Ref
	Answer     any
	NextLink   string // from the header Link
	// Status is the HTTP status of the response, 0 if it has none; ContentRange is its Content-Range header, "" for
	// none.
	Status       int
	ContentRange string
	LinksRead    bool // a condition reads the headers or links
	// Rows is the number of rows that the call has read so far, -1 if unknown.
	Rows int
}

// found is a member that indicates whether there are more pages.
type found struct {
	path []any
	what sign
	more bool
}

// sign is the way in which a member indicates that.
type sign int

const (
	signFlag sign = iota + 1
	signNext
	signTotal
)

// Warning returns a sign of further pages that no condition reads, with a suggested fix; "" for none. A sign that the
// response is complete is trusted, as is a total that a condition reads and that the rows have reached. If a
// condition reads one sign of further pages, the author has decided about them.
func (u Unread) Warning() string {
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
		value, _ := expression.FollowKeys(u.Answer, one.path)
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

// rowRange matches a Content-Range header that counts rows: its last numbers are the index of the last row and the
// total (RFC 9110, section 14.4, allows any unit; some APIs omit it).
var rowRange = regexp.MustCompile(`^(?:\w+[ =])?\d+-(\d+)/(\d+|\*)$`)

// partText says that a response has only a part of all rows, according to its status or its Content-Range header;
// "" if it has no such sign, or has the last rows.
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

// fixText suggests a fix. If a condition reads a member that the response lacks, it may mean this one.
func (u Unread) fixText(one found, name string) string {
	var pages *playbook.Policy
	for _, policy := range u.Policies {
		if policy.Then.NextCall == nil {
			continue
		}
		pages = policy
		for _, ref := range pageMembers(policy) {
			if value, _ := expression.FollowKeys(u.Answer, ref.Path); value == nil && len(one.path) > 0 && plainName(ref.Path) == plainName(one.path) {
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

// isRead reports whether a condition reads the member, one of its parents, or something in it.
func (u Unread) isRead(path []any) bool {
	return slices.ContainsFunc(u.Conditions, func(ref expression.Ref) bool {
		n := min(len(ref.Path), len(path))
		return slices.Equal(ref.Path[:n], path[:n])
	})
}

// mostLevels is the depth to which a response is searched for signs of more pages. Deeper members describe rows,
// not the response.
const mostLevels = 4

// findSigns returns the members of maps that indicate whether there are more pages, in key order. Lists are
// skipped: their members are rows.
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
		case nextName.MatchString(name) && isPageReference(member) && (hasRows(u.Answer, 0) || emptyPageNext.MatchString(name)):
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
	endFlags  = []string{"islast", "islastpage", "last", "done", "complete", "isdone", "finished", "endofrecords", "endofstream"} // if they are true
	totals    = []string{
		"total", "totalcount", "totalresults", "totalitems", "totalrecords", "totalelements", "totalsize", "totalhits", "totalrows", "numfound", "count", "recordcount", "resultcount",
	}
	// nextName matches names of members that lead to another page, but not of times or of previous pages.
	nextName = regexp.MustCompile(`^(odata)?next(page|pages|link|url|uri|href|cursor|token|offset|start|skip|index|marker|key|records|results|batch|from|after|position|continuation)*$|` +
		`^(end|after|next|page|scroll|result)?cursor$|^(page|continuation|pagination|next|nextcontinuation|scroll|skip|resumption)token$`)
)

// emptyPageNext matches those of them that lead on from a page without rows, of which some APIs have one in the middle. A cursor there
// is often that of the end.
var emptyPageNext = regexp.MustCompile(`^(odata)?next(page|link|url|uri|href|token|pagetoken)?$`)

// plainName returns the last name of a path in lower case, without punctuation.
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

// isPageReference reports whether a value leads to another page: a text, a number, or a map that contains one.
func isPageReference(value any) bool {
	switch value := value.(type) {
	case string:
		return value != "" && value != "false" && value != "null"
	case int, float64:
		return expression.Truthy(value)
	case map[string]any:
		//workflowcheck:ignore whether there is any
		for _, member := range value {
			if _, isText := member.(string); isText && isPageReference(member) {
				return true
			}
		}
	}
	return false
}

// totalOf returns the total number of rows that a member states, nil for none.
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

// StatedTotal returns the largest number of rows that a response says there are, 0 if it says none.
func StatedTotal(response any) (most int) {
	for _, sign := range (Unread{Rows: 1}).findSigns(nil, response) {
		if sign.what == signTotal {
			value, _ := expression.FollowKeys(response, sign.path)
			total, _ := totalOf(value).(int)
			most = max(most, total)
		}
	}
	return most
}

// exceedsRows reports whether a total exceeds the number of rows read.
func exceedsRows(total any, rows int) bool {
	n, _ := total.(int)
	return n > rows
}

// hasRows reports whether a response contains a non-empty list that is not inside another list.
func hasRows(value any, level int) bool { return LongestList(value, level) > 0 }

// LongestList returns the length of the longest list in a response that is not inside another list; -1 for none.
func LongestList(value any, level int) int {
	if list, found := longestList(value, level); found {
		return len(list)
	}
	return -1
}

// longestList returns the longest list in a response that is not inside another list; of lists of one length, the one
// whose names come first.
func longestList(value any, level int) (longest []any, found bool) {
	switch value := value.(type) {
	case []any:
		return value, true
	case map[string]any:
		if level > mostLevels {
			break
		}
		for _, name := range playbook.SortedKeys(value) {
			if list, has := longestList(value[name], level+1); has && (!found || len(list) > len(longest)) {
				longest, found = list, true
			}
		}
	}
	return longest, found
}
