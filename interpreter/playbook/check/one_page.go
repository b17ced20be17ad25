package check

import (
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// checkOnePage warns about requests with a parameter for pages or page sizes if no policy requests the next page,
// because the first page would be taken for all data. It accepts parameters that a loop or a route counts, and
// steps whose response is checked somewhere.
func checkOnePage(c *checker) {
	for _, step := range c.pb.CallSteps() {
		if step.Action == nil || c.readsFurther(step) {
			continue
		}
		action := c.pb.ResolveAction(step.Action)
		if !playbook.TraitsOf(c.toolOf(action)).Requests || !isGet(action) {
			continue
		}
		asked := c.pageParameters(action)
		if len(asked) > 0 && !slices.ContainsFunc(asked, func(one pageParameter) bool { return one.counted }) {
			warnOnePage(c, asked[0])
		}
	}
}

// readsFurther reports whether a step requests more than its first page, or checks that page, possibly in a later
// route that leads back.
func (c *checker) readsFurther(step *playbook.Step) bool {
	for range step.NextCalls() {
		return true
	}
	answer := []string{"response", "page", "this", "data", "result"}
	for _, policy := range step.Retry {
		if policy.When.UsesAny(answer...) || policy.StopWhen.UsesAny(answer...) {
			return true
		}
	}
	for _, of := range c.pb.Steps {
		for _, route := range of.Next {
			if route.When.UsesAny(step.Name, "steps") || of == step && route.When.UsesAny(answer...) {
				return true
			}
		}
	}
	return false
}

// isGet reports whether a request is a GET: in other requests, such parameters may have any meaning.
func isGet(action *playbook.Action) bool {
	method := action.Field("method")
	return method == nil || strings.EqualFold(nodeText(method), "GET")
}

// pageParameter is a parameter that requests a part of the data.
type pageParameter struct {
	name string
	at   place
	// counted says that a template provides the page number. Then the playbook counts the pages, so it reads
	// several.
	counted bool
}

var (
	// sizeParameter matches names of parameters for the size of a page, positionParameter for its position, in the
	// form of PlainWord without brackets.
	sizeParameter     = regexp.MustCompile(`^(limit|pagelimit|pagesize|perpage|maxresults|resultsperpage|itemsperpage|sysparmlimit|top|take)$`)
	positionParameter = regexp.MustCompile(`^(page|pagenumber|pageno|pagenum|pageindex|offset|skip|startat|startindex|sysparmoffset|recordoffset|` +
		`(start|next|page)?cursor|(next)?pagetoken|nexttoken|pageafter|startingafter|continuationtoken|scrollid|paginationtoken)$`)
	queryPart = regexp.MustCompile(`[?&]([^=&#?]+)=([^&#]*)`)
	aNumber   = regexp.MustCompile(`^\d+$`)
	bracketed = strings.NewReplacer("$", "", "[", "", "]", "")
)

// pageParameters returns the page parameters in params and then in the url of a request.
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

// pageParameter recognises a page parameter by its name and value. A size of one row is not a page, and a word is
// not a page number.
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
	c.Warnf(one.at.sourcePosition(), codeOnePage, "%s requests only a part of the data, and no policy fetches the next page; "+
		`add one, such as {when: "{{ response.next }}", then: {next_call: {params: {…}}, collect: {path: …}}}; `+
		`if you want only one page, say so: {when: "{{ response }}", then: {}}`, one.name)
}
