package page

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/playbook"
)

// A row may have a list that is itself the first page of a longer one, such as the comments of an issue. The pages of the
// response do not lead to the rest of it.

// InnerPage is a list within rows of which the response has only the first page.
type InnerPage struct {
	Field string // of the rows
	Sign  string // the member that says so, such as pageInfo.hasNextPage
}

// mostInnerLevels is the depth to which rows are searched for such lists, and mostInnerRows how many rows of a list: a
// source that cuts lists short does so in many rows, and the search takes time.
const mostInnerLevels, mostInnerRows = 10, 1000

// InnerPages returns the lists within the rows of a response that have further pages, in the order of their fields.
func InnerPages(response any) []InnerPage {
	found := map[InnerPage]bool{}
	findInner(response, 0, false, found)
	if len(found) == 0 {
		return nil
	}
	all := make([]InnerPage, 0, len(found))
	//workflowcheck:ignore they are sorted
	for one := range found {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b InnerPage) int { return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Sign, b.Sign)) })
	return all
}

// findInner adds the inner pages of a value to a set; inRow says that the value is a row or within one.
func findInner(value any, level int, inRow bool, found map[InnerPage]bool) {
	if level > mostInnerLevels {
		return
	}
	switch value := value.(type) {
	case []any:
		for _, row := range value[:min(len(value), mostInnerRows)] {
			findInner(row, level+1, true, found)
		}
	case map[string]any:
		//workflowcheck:ignore what is found is sorted
		for key, member := range value {
			below, isMap := member.(map[string]any)
			if inRow && isMap && hasElements(below) {
				if sign := moreSign(below, true); sign != "" {
					found[InnerPage{Field: key, Sign: sign}] = true
				}
			}
			if name, isLink := strings.CutSuffix(key, odataNext); inRow && isLink && name != "" && isText(member) {
				found[InnerPage{Field: name, Sign: key}] = true
			}
			findInner(member, level+1, inRow, found)
		}
	}
}

// odataNext ends the name of a member beside a list that is cut short (OData 4.01 JSON, section 4.6.5).
const odataNext = "@odata.nextLink"

// hasElements reports whether a map has a list that is not empty.
func hasElements(object map[string]any) bool {
	//workflowcheck:ignore whether there is any
	for _, member := range object {
		if list, isList := member.([]any); isList && len(list) > 0 {
			return true
		}
	}
	return false
}

// innerFlags are the flags of pages that cannot be columns of a row.
var innerFlags = slices.DeleteFunc(slices.Clone(moreFlags), func(name string) bool { return name == "more" || name == "truncated" })

// innerNext matches names of members that lead to the next page, and not to the end of this one.
var innerNext = regexp.MustCompile(`^next(page|link|url|uri|href|cursor|token|pagetoken|pagelink|pageurl|records)?(url)?$`)

// moreSign returns the member of a page, or of a map in it, that says that there are more; "" for none.
func moreSign(object map[string]any, deeper bool) string {
	for _, key := range playbook.SortedKeys(object) {
		name, member := plainName([]any{key}), object[key]
		switch below, isMap := member.(map[string]any); {
		case slices.Contains(innerFlags, name) && (member == true || member == "true"), innerNext.MatchString(name) && isText(member):
			return key
		case isMap && deeper:
			if sign := moreSign(below, false); sign != "" {
				return key + "." + sign
			}
		}
	}
	return ""
}

// isText reports whether a value is a text with something in it.
func isText(value any) bool {
	text, is := value.(string)
	return is && text != ""
}

// Path names the sign as expressions on a row do.
func (p InnerPage) Path() string {
	if strings.HasPrefix(p.Sign, p.Field+"@") {
		return p.Sign
	}
	return p.Field + "." + p.Sign
}

// IsRead reports whether the text of a playbook reads the sign of an inner page, or leaves the field out.
func (p InnerPage) IsRead(playbookText []byte) bool {
	field := regexp.QuoteMeta(p.Field)
	sign := regexp.QuoteMeta(p.Sign[strings.LastIndex(p.Sign, ".")+1:])
	// GraphQL writes { between the field and the sign, expressions and Python do not.
	read := regexp.MustCompile(`\b` + field + `\b(?:[^\n{]|\{\})*` + sign + `|exclude:[^\n]*\b` + field + `\b`)
	return read.Match(playbookText)
}

// IsNamed reports whether the text of a playbook names the field.
func (p InnerPage) IsNamed(playbookText []byte) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(p.Field) + `\b`).Match(playbookText)
}
