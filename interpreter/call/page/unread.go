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
	// Status is the HTTP status of the response, 0 if it has none.
	Status    int
	LinksRead bool // a condition reads the headers or links
	// Headers are those of the response, by name in lower case.
	Headers map[string]string
	// Rows is the number of rows that the call has read so far, -1 if unknown.
	Rows int
	// Pages is the number of pages that the call has read so far, 0 if unknown.
	Pages int
	// Shorter is the number of the first page that had fewer rows than others although another one has followed; 0 for none.
	Shorter int
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
	signPages
)

// Warning returns a sign of further pages that no condition reads, with a suggested fix; "" for none. A sign that the
// response is complete is trusted, unless a page before had fewer rows than others, as is a total that a condition reads and that the rows have reached. If a
// condition reads one sign of further pages, the author has decided about them.
func (u Unread) Warning() string {
	signs, lastPage := u.findSigns(nil, u.Answer), false
	for _, one := range signs {
		switch {
		case one.more && u.isRead(one.path):
			return u.offByOneText(one)
		case !one.more && one.what == signFlag:
			if u.Shorter == 0 {
				return ""
			}
			lastPage = true
		case one.more || !u.isRead(one.path):
		case one.what == signPages && u.Pages > 1:
			lastPage = true // an earlier page may have lacked rows
		default:
			return ""
		}
	}
	for _, one := range signs {
		if !one.more || lastPage && one.what != signTotal {
			continue
		}
		if lastPage {
			value, _ := expression.FollowKeys(u.Answer, one.path)
			shorter := ""
			if u.Shorter > 0 {
				shorter = fmt.Sprintf(", and page %d had fewer than others", u.Shorter)
			}
			return fmt.Sprintf("%s is %s, but the %d pages up to the last one had only %d rows%s: some may be missing; if it counts other rows too, use it in a condition",
				memberName(expression.Ref{Root: "response", Path: one.path}), expression.Text(totalOf(value)), u.Pages, u.Rows, shorter)
		}
		text, condition := u.signText(one)
		return text + u.fixText(one, condition)
	}
	if lastPage {
		return ""
	}
	if u.NextLink != "" && !u.LinksRead {
		return "the response has a header Link with a next page, which no condition uses: there are more pages" +
			u.fixText(found{}, "this.meta.links.next is defined")
	}
	if part := u.partText(); part != "" && !u.LinksRead {
		return part + ", which no condition uses: there are more pages" + u.fixText(found{}, "len(page) > 0")
	}
	if u.LinksRead {
		return ""
	}
	return u.headerWarning()
}

// plusOrMinusOne matches an expression that calculates the number of the last page.
var plusOrMinusOne = regexp.MustCompile(`[-+]\s*1\b`)

// offByOneText describes a total of pages that a condition reads, of which the first or the last one is missing: pages numbered from 0
// end at the total - 1, and others at the total. It returns "" unless the page numbers leave no other explanation.
func (u Unread) offByOneText(one found) string {
	value, _ := expression.FollowKeys(u.Answer, one.path)
	total, _ := totalOf(value).(int)
	beside, _ := expression.FollowKeys(u.Answer, one.path[:len(one.path)-1])
	object, _ := beside.(map[string]any)
	if one.what != signPages || u.Pages != total-1 || pageNumber(object) != u.Pages {
		return ""
	}
	for _, policy := range u.Policies {
		reads := slices.ContainsFunc(pageMembers(policy), func(ref expression.Ref) bool { return slices.Equal(ref.Path, one.path) })
		if policy.Then.NextCall == nil || !reads || !plusOrMinusOne.MatchString(policy.When.Raw) {
			continue
		}
		return fmt.Sprintf("%s is %d, but %s: the last page is missing if pages are numbered from 1, and the first one if from 0; in the `when` of policy %d (line %d, column %d), compare with %[1]s for pages from 1, with %[1]s - 1 for pages from 0, and request the first page with its number",
			memberName(expression.Ref{Root: "response", Path: one.path}), total, readText(u.Pages, "page"), policy.Number, policy.When.Pos.Line, policy.When.Pos.Column)
	}
	return ""
}

// signText describes a member that says that there are more pages, and gives a condition that uses it.
func (u Unread) signText(one found) (text, condition string) {
	value, _ := expression.FollowKeys(u.Answer, one.path)
	name := memberName(expression.Ref{Root: "response", Path: one.path})
	stated := expression.Text(totalOf(value))
	switch {
	case one.what == signTotal:
		return fmt.Sprintf("%s is %s, but %s, and no condition uses it: there are more pages", name, stated, readText(u.Rows, "row")), "len(pages) < " + name
	case one.what == signPages:
		return fmt.Sprintf("%s is %s, but %s, and no condition uses it: there are more pages", name, stated, readText(u.Pages, "page")), "_retry.page < " + name
	case value == "false":
		return fmt.Sprintf("%s is false, and no condition uses it: there are more pages", name), name + " == 'false'"
	case value == false:
		return fmt.Sprintf("%s is false, and no condition uses it: there are more pages", name), "not " + name
	}
	return fmt.Sprintf("the response has %s, which no condition uses: there are more pages", name), name
}

// headerWarning describes a header that says that there are more pages; "" for none. No standard defines such headers, but many APIs have
// one of these names.
func (u Unread) headerWarning() string {
	for _, header := range playbook.SortedKeys(u.Headers) {
		rest, custom := strings.CutPrefix(header, "x-")
		if !custom {
			continue
		}
		value, name := u.Headers[header], plainName([]any{strings.TrimPrefix(strings.TrimPrefix(rest, "wp-"), "pagination-")})
		total, _ := totalOf(value).(int)
		text, condition := "", fmt.Sprintf("this.meta.headers['%s']", header)
		switch {
		case slices.Contains(totals, name) && u.Rows > 0 && total > u.Rows:
			text, condition = ", but "+readText(u.Rows, "row"), fmt.Sprintf("len(pages) < int(%s)", condition)
		case slices.Contains(pageTotals, name) && u.Pages > 0 && total > u.Pages && u.mayLackPages():
			text, condition = ", but "+readText(u.Pages, "page"), fmt.Sprintf("_retry.page < int(%s)", condition)
		case slices.Contains(moreFlags, name) && value == "true":
		case name == "nextpage" && isPageReference(value) && value != "0":
		default:
			continue
		}
		return fmt.Sprintf("the response has a header %s of %s%s, which no condition uses: there are more pages", http.CanonicalHeaderKey(header), playbook.ShortenText(value), text) +
			u.fixText(found{}, condition)
	}
	return ""
}

// mayLackPages reports whether a total of pages counts: a response that has no rows from the start has no further pages,
// whatever it says, while an empty page behind others may be one in the middle.
func (u Unread) mayLackPages() bool { return hasRows(u.Answer) || u.Pages > 1 && u.Rows > 0 }

// readText says how many rows or pages were read.
func readText(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " was read"
	}
	return fmt.Sprintf("%d %ss were read", n, noun)
}

// rowRange matches a Content-Range header that counts rows: its last numbers are the index of the last row and the
// total (RFC 9110, section 14.4, allows any unit; some APIs omit it).
var rowRange = regexp.MustCompile(`^(?:\w+[ =])?\d+-(\d+)/(\d+|\*)$`)

// partText says that a response has only a part of all rows, according to its status or its Content-Range header;
// "" if it has no such sign, or has the last rows.
func (u Unread) partText() string {
	if parts := rowRange.FindStringSubmatch(strings.TrimSpace(u.Headers["content-range"])); parts != nil && parts[2] != "*" {
		last, _ := strconv.Atoi(parts[1])
		total, _ := strconv.Atoi(parts[2])
		if last+1 >= total {
			return ""
		}
		return fmt.Sprintf("the response has a header Content-Range of %s", strings.TrimSpace(u.Headers["content-range"]))
	}
	pages := slices.ContainsFunc(u.Policies, func(policy *playbook.Policy) bool { return policy.Then.NextCall != nil })
	if u.Status != http.StatusPartialContent || pages {
		return ""
	}
	return "the response has the status 206 (partial content)"
}

// fixText suggests a fix with a condition. If a condition reads a member that the response lacks, it may mean this one.
func (u Unread) fixText(one found, condition string) string {
	var pages *playbook.Policy
	for _, policy := range u.Policies {
		if policy.Then.NextCall == nil {
			continue
		}
		pages = policy
		for _, ref := range pageMembers(policy) {
			if value, _ := expression.FollowKeys(u.Answer, ref.Path); value == nil && len(one.path) > 0 && plainName(ref.Path) == plainName(one.path) {
				return fmt.Sprintf("; policy %d uses %s, which it does not have: did you mean %s?", policy.Number, memberName(ref), memberName(expression.Ref{Root: "response", Path: one.path}))
			}
		}
	}
	if pages != nil {
		return fmt.Sprintf("; use it in the `when` of policy %d (line %d, column %d)", pages.Number, pages.When.Pos.Line, pages.When.Pos.Column)
	}
	return fmt.Sprintf("; write a policy with when: \"{{ %s }}\", next_call and collect", condition)
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
		case slices.Contains(lastFlags, name) && (member == false || member == "false") && hasRows(u.Answer):
			one.what, one.more = signFlag, true
		case slices.Contains(totals, name) && totalOf(member) != nil:
			if u.Rows <= 0 {
				continue
			}
			one.what, one.more = signTotal, exceedsRows(totalOf(member), u.Rows)
		case u.Pages > 0 && slices.Contains(pageTotals, name) && totalOf(member) != nil && (name != "pages" || hasPageNumber(object)):
			one.what, one.more = signPages, exceedsRows(totalOf(member), u.Pages) && !isLastPage(object, member) && u.mayLackPages()
		case isPageReference(member) && isNextName(name) && (hasRows(u.Answer) || emptyPageNext.MatchString(name)):
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
	moreFlags = []string{
		"hasmore", "hasnextpage", "hasnext", "more", "morerecords", "hasmoreitems", "istruncated", "moreresults", "moreitems", "moreavailable", "hasmoreresults", "hasmorepages",
		"hasmorerecords", "hasmorerows", "hasmoredata", "moredata", "moredataavailable", "morepages", "truncated",
	}
	endFlags  = []string{"islast", "islastpage", "last", "done", "complete", "isdone", "finished", "endofrecords", "endofstream"} // if they are true
	lastFlags = []string{"islast", "islastpage", "last", "lastpage", "endofrecords", "endofstream"}                               // if they are false: some of the others are also columns
	totals    = []string{
		"total", "totalcount", "totalresults", "totalitems", "totalrecords", "totalelements", "totalsize", "totalhits", "totalrows", "numfound", "count", "recordcount", "resultcount",
	}
	pageTotals = []string{"totalpages", "totalpage", "totalpagecount", "lastpage", "pagetotal", "pagestotal", "pagecount", "pages", "numpages", "numberofpages", "maxpage", "maxpages"}
	// pageNumbers are the names of members beside such a total that number the page.
	pageNumbers = []string{"page", "currentpage", "pagenumber", "pagenum", "current", "number"}
	// nextName matches names of members that lead to another page, but not of times or of previous pages.
	nextName = regexp.MustCompile(`^(odata)?next(page|pages|link|url|uri|href|cursor|token|offset|start|skip|index|marker|key|records|results|batch|from|after|position|continuation)*$|` +
		`^(end|after|next|page|scroll|result)?cursor$|^(page|continuation|pagination|next|nextcontinuation|scroll|skip|resumption)token$`)
)

// isNextName reports whether nextName matches, which it does only for names with one of the words.
func isNextName(name string) bool {
	return (strings.Contains(name, "next") || strings.Contains(name, "cursor") || strings.Contains(name, "token")) && nextName.MatchString(name)
}

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

// pageNumber returns the number of the page that a map states, 0 for none.
func pageNumber(object map[string]any) int {
	for _, key := range playbook.SortedKeys(object) {
		if slices.Contains(pageNumbers, plainName([]any{key})) {
			if number, _ := totalOf(object[key]).(int); number > 0 {
				return number
			}
		}
	}
	return 0
}

// hasPageNumber reports whether a map describes a page: its `pages` are not those of a book.
func hasPageNumber(object map[string]any) bool { return pageNumber(object) > 0 }

// isLastPage reports whether the number of the page that a map states has reached the total. Numbers may begin at 0.
func isLastPage(object map[string]any, total any) bool {
	pages, _ := totalOf(total).(int)
	return pageNumber(object) >= pages
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
func hasRows(value any) bool { return LongestList(value, 0) > 0 }

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
	longest, _, found = longestListAt(nil, value, level)
	return longest, found
}

// longestListAt returns the path of that list too.
func longestListAt(path []any, value any, level int) (longest, at []any, found bool) {
	switch value := value.(type) {
	case []any:
		return value, path, true
	case map[string]any:
		if level > mostLevels {
			break
		}
		for _, name := range playbook.SortedKeys(value) {
			list, below, has := longestListAt(append(slices.Clip(path), name), value[name], level+1)
			if has && (!found || len(list) > len(longest)) {
				longest, at, found = list, below, true
			}
		}
	}
	return longest, at, found
}
