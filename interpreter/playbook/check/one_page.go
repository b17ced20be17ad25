package check

import (
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// checkOnePage warns of requests with a parameter for pages or their size if no policy requests the next page,
// because the first page would be taken for all. It accepts parameters that a loop or a route counts, and steps whose
// answer somebody checks.
func checkOnePage(c *checker) {
	for _, step := range c.pb.CallSteps() {
		if step.Action == nil || c.readsFurther(step) {
			continue
		}
		action := c.pb.Resolve(step.Action)
		if !playbook.TraitsOf(c.toolOf(action)).Requests || !isGet(action) {
			continue
		}
		asked := c.pageParameters(action)
		if len(asked) > 0 && !slices.ContainsFunc(asked, func(one pageParameter) bool { return one.counted }) {
			warnOnePage(c, asked[0])
		}
	}
}

// readsFurther reports whether a step requests more than its first page, or decides by that page, also in a later
// route, which may lead back.
func (c *checker) readsFurther(step *playbook.Step) bool {
	for range step.NextCalls() {
		return true
	}
	answer := []string{"response", "page", "this", "data", "result"}
	for _, policy := range step.Retry {
		if policy.When.Names(answer...) || policy.StopWhen.Names(answer...) {
			return true
		}
	}
	for _, of := range c.pb.Steps {
		for _, route := range of.Next {
			if route.When.Names(step.Name, "steps") || of == step && route.When.Names(answer...) {
				return true
			}
		}
	}
	return false
}

// isGet reports whether a request is a GET: what else sends such words may mean anything by them.
func isGet(action *playbook.Action) bool {
	method := action.Field("method")
	return method == nil || strings.EqualFold(nodeText(method), "GET")
}

// pageParameter is a parameter that requests a part of the data.
type pageParameter struct {
	name string
	at   place
	// counted says that a template gives the place of the page, so that something else counts the pages.
	counted bool
}

var (
	// sizeParameter names how many rows a page has, positionParameter which page is meant, in the form of PlainWord without brackets.
	sizeParameter     = regexp.MustCompile(`^(limit|pagelimit|pagesize|perpage|maxresults|resultsperpage|itemsperpage|sysparmlimit|top|take)$`)
	positionParameter = regexp.MustCompile(`^(page|pagenumber|pageno|pagenum|pageindex|offset|skip|startat|startindex|sysparmoffset|recordoffset|` +
		`(start|next|page)?cursor|(next)?pagetoken|nexttoken|pageafter|startingafter|continuationtoken|scrollid|paginationtoken)$`)
	queryPart = regexp.MustCompile(`[?&]([^=&#?]+)=([^&#]*)`)
	aNumber   = regexp.MustCompile(`^\d+$`)
	bracketed = strings.NewReplacer("$", "", "[", "", "]", "")
)

// pageParameters are the parameters of the params and the url of a request, in this order.
func (c *checker) pageParameters(action *playbook.Action) (asked []pageParameter) {
	if params := action.Field(playbook.FieldParams); params != nil {
		for _, entry := range params.Entries {
			if one, asks := c.pageParameter(entry.Key, entry.Value); asks {
				asked = append(asked, one)
			}
		}
	}
	if url := action.Field("url"); url != nil {
		for _, match := range queryPart.FindAllStringSubmatchIndex(url.Raw, -1) {
			name, value := url.Raw[match[2]:match[3]], url.Raw[match[4]:match[5]]
			if one, asks := c.pageParameter(name, &playbook.Node{Raw: value, Value: value}); asks {
				one.at = c.placeOf(url, len([]rune(url.Raw[:match[2]])))
				asked = append(asked, one)
			}
		}
	}
	return asked
}

// pageParameter recognises one by its name and value. One row is no page, and a word is no page
// number.
func (c *checker) pageParameter(name string, value *playbook.Node) (one pageParameter, asks bool) {
	plain := playbook.PlainWord(bracketed.Replace(name))
	isSize, isPosition := sizeParameter.MatchString(plain), positionParameter.MatchString(plain)
	if !isSize && !isPosition || value == nil {
		return one, false
	}
	one = pageParameter{name: name, at: c.placeOf(value, 0)}
	text := expression.Text(value.Value)
	switch {
	case strings.Contains(value.Raw, "{{"):
		one.counted = isPosition
		return one, true
	case isSize:
		return one, aNumber.MatchString(text) && text != "0" && text != "1"
	case strings.HasSuffix(plain, "cursor"), strings.HasSuffix(plain, "token"), strings.HasSuffix(plain, "after"), strings.HasSuffix(plain, "id"):
		return one, true
	}
	return one, aNumber.MatchString(text)
}

func warnOnePage(c *checker, one pageParameter) {
	c.Warnf(one.at.sourcePosition(), codeOnePage, "%s requests a part of the data, and no policy fetches the next page; "+
		`add one such as {when: "{{ response.next }}", then: {next_call: {params: {…}}, collect: {path: …}}}; `+
		`if one page is all you want, say so: {when: "{{ response }}", then: {}}`, one.name)
}
