package http

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter"
)

// What is kept of an answer's links. A relation is named in the history with its
// whole address, so that a few bytes of header could become many there.
const (
	// maxRelations bounds the relations of an answer that are kept in history. Without the
	// bounds of links a header of a few kilobytes with many relations would become megabytes
	// there, as each has its whole address.
	maxRelations = 100
	// maxLink bounds the address of a link, in bytes. A longer one is dropped; if it leads to
	// the next page, the response is refused.
	maxLink = 8 << 10
	// maxRelation bounds the name of a relation, in bytes: it is a key of meta.links, in
	// history.
	maxRelation = 256
	// maxRelationBytes bounds names and addresses of all relations together, in bytes.
	maxRelationBytes = 32 << 10
)

// pageRelations lead to other pages. They are kept even if there are too many other links.
var pageRelations = []string{"next", "prev", "previous", "first", "last"}

// typeLink is the type of the error for a link to the next page that is too long: without it
// the pages would seem to end.
const typeLink = "link"

// parseLinks reads Link headers (RFC 8288, section 3): relation -> absolute URL. The first link
// of a relation wins; invalid links are ignored, as the RFC asks, and so are those over the
// bounds.
func parseLinks(values []string, base *url.URL) (map[string]string, error) {
	links := &boundedLinks{base: base, found: map[string]string{}}
	for _, value := range values {
		for value != "" {
			var target, parameters string
			target, parameters, value = nextLink(value)
			if target == "" {
				continue
			}
			if err := links.addLink(target, parameters); err != nil {
				return nil, err
			}
		}
	}
	if len(links.found) == 0 {
		return nil, nil
	}
	return links.found, nil
}

// boundedLinks are the links of an answer that are within the bounds.
type boundedLinks struct {
	base  *url.URL
	found map[string]string
	bytes int
}

// addLink records a link for each of its relations that has none yet.
func (k *boundedLinks) addLink(target, parameters string) error {
	address := "" // not read yet
	for relation := range strings.FieldsSeq(relationOf(parameters)) {
		if len(relation) > maxRelation {
			continue
		}
		relation = strings.ToLower(relation)
		leads := slices.Contains(pageRelations, relation)
		if _, taken := k.found[relation]; taken || !leads && k.isFull() {
			continue
		}
		if address == "" {
			var readable bool
			if address, readable = k.absoluteAddress(target); !readable {
				return nil
			}
		}
		switch {
		case len(address) <= maxLink && (leads || k.bytes+len(relation)+len(address) <= maxRelationBytes):
			k.found[relation] = address
			k.bytes += len(relation) + len(address)
		case relation == "next":
			return &tool.Error{
				Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: typeLink,
				Message: fmt.Sprintf("the link to the next page is longer than %d bytes", maxLink),
			}
		}
	}
	return nil
}

func (k *boundedLinks) isFull() bool {
	return len(k.found) >= maxRelations || k.bytes >= maxRelationBytes
}

// absoluteAddress resolves a target to an absolute URL without a password. A target that is too
// long is returned unchanged, since it is not kept.
func (k *boundedLinks) absoluteAddress(target string) (address string, readable bool) {
	if len(target) > maxLink {
		return target, true
	}
	u, err := k.base.Parse(target)
	if err != nil {
		return "", false
	}
	u.User = nil
	return u.String(), true
}

// nextLink reads one <target>; parameters from a header, up to the comma that
// is neither in the target nor in quotes.
func nextLink(value string) (target, parameters, rest string) {
	open := strings.IndexByte(value, '<')
	if open < 0 {
		return "", "", ""
	}
	end := strings.IndexByte(value[open:], '>')
	if end < 0 {
		return "", "", ""
	}
	target, value = value[open+1:open+end], value[open+end+1:]
	comma := indexUnquoted(value, ',')
	if comma < 0 {
		return target, value, ""
	}
	return target, value[:comma], value[comma+1:]
}

// relationOf returns the first rel among parameters such as `; rel="next"; title=x`.
func relationOf(parameters string) string {
	for parameters != "" {
		var one string
		if i := indexUnquoted(parameters, ';'); i < 0 {
			one, parameters = parameters, ""
		} else {
			one, parameters = parameters[:i], parameters[i+1:]
		}
		name, value, _ := strings.Cut(one, "=")
		if strings.EqualFold(strings.TrimSpace(name), "rel") {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}

// indexUnquoted returns the place of a byte outside quotes, -1 for none.
func indexUnquoted(s string, wanted byte) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quoted:
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == wanted && !quoted:
			return i
		}
	}
	return -1
}

// isURLError recognises the wrapper that net/http puts around every error.
func isURLError(err error) bool {
	var wrapper *url.Error
	return errors.As(err, &wrapper)
}
