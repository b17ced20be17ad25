package playbook

import (
	"regexp"
	"strings"

	"reprise/interpreter/expression"
)

// checkURL warns of values in a url that are probably not meant to be escaped, and
// of | raw where nothing is escaped: docs/concepts/expressions.md#values-in-a-url.
func checkURL(c *checker) {
	urls := map[*Node]bool{}
	for _, node := range c.urlNodes() {
		urls[node] = true
		if node.Template != nil {
			c.checkURLValues(node)
		}
	}
	for _, node := range c.filePaths() {
		urls[node] = true
		c.checkPathValues(node)
	}
	for _, at := range c.pb.values() {
		for scalar := range at.node.Templates() {
			if !urls[scalar] {
				c.refuseRaw(scalar, scalar.Template)
			}
		}
	}
	for _, read := range c.usable() {
		for _, template := range read.parsed.Templates() {
			c.refuseRaw(read.node, template)
		}
	}
}

// urlNodes are the values that are rendered as URLs.
func (c *checker) urlNodes() []*Node {
	var nodes []*Node
	for _, call := range c.pb.actions() {
		nodes = append(nodes, call.action.urls()...)
	}
	for _, step := range c.pb.Steps {
		for next := range step.nextCalls() {
			if next.URL != nil {
				nodes = append(nodes, next.URL)
			}
		}
	}
	return nodes
}

// filePaths are the values that are rendered as paths of files.
func (c *checker) filePaths() []*Node {
	var nodes []*Node
	for _, call := range c.pb.actions() {
		if path := call.action.Field(FieldPath); path != nil && path.Template != nil && TraitsOf(c.toolOf(call.action)).IntoFile {
			nodes = append(nodes, path)
		}
	}
	return nodes
}

// folderNames are names of what holds more than a name in a path.
var folderNames = regexp.MustCompile(`(?i)(path|folder|dir|directory)$`)

// checkPathValues warns of values that are probably meant to be several names.
func (c *checker) checkPathValues(node *Node) {
	if _, single := node.Template.Single(); single {
		return
	}
	for _, segment := range node.Template.Segments() {
		if segment.Program == nil || segment.Program.Raw() || segment.Program.Written() {
			continue
		}
		if name := strings.TrimSpace(segment.Program.Source()); folderNames.MatchString(name) {
			c.warnf(node.Position(segment.Start), codeURLValue, "{{ %s }} is one name in the path, in which / becomes %%2F; if it holds several, write {{ %s | raw }}", name, name)
		}
	}
}

func (c *checker) refuseRaw(node *Node, template *expression.Template) {
	for _, segment := range template.Segments() {
		if segment.Program != nil && segment.Program.Raw() {
			c.errorf(node.Pos, codeRawOutsideURL, "%q says that a url or path takes the value as it is; nothing is escaped here, so leave \"| raw\" out",
				"{{ "+strings.TrimSpace(segment.Program.Source())+" }}")
		}
	}
}

// pathNames are names of what holds more than a part of a path.
var pathNames = regexp.MustCompile(`(?i)(path|endpoint|uri|url|href|link|route)$`)

func (c *checker) checkURLValues(node *Node) {
	if _, single := node.Template.Single(); single {
		return
	}
	segments := node.Template.Segments()
	before := "" // what is known of the URL so far
	for i, segment := range segments {
		if segment.Program == nil {
			before += segment.Text
			continue
		}
		place := placeInURL(before)
		direct := place == urlHost && strings.HasSuffix(before, headStandIn)
		if place == urlHead {
			before += headStandIn
		} else {
			before += "0"
		}
		if segment.Program.Raw() || segment.Program.Written() {
			continue
		}
		name := strings.TrimSpace(segment.Program.Source())
		pairs := place == urlQuery && strings.HasSuffix(strings.TrimSuffix(before, "0"), "?") || strings.HasSuffix(before, "&0")
		switch {
		case direct:
			c.warnf(node.Position(segment.Start), codeURLValue,
				"{{ %s }} is where the host may continue, so it can hold no path: write a / before it, or {{ %s | raw }} if it is the path", name, name)
		case place == urlPath && pathNames.MatchString(name):
			c.warnf(node.Position(segment.Start), codeURLValue,
				"{{ %s }} is escaped as one part of the path, / included; if it holds several, write {{ %s | raw }}", name, name)
		case pairs && !followedBy(segments[i+1:], "="):
			c.warnf(node.Position(segment.Start), codeURLValue,
				"{{ %s }} is escaped as one value, & and = included; write its pairs below params, or {{ %s | raw }}", name, name)
		}
	}
}

// headStandIn stands for a value at the beginning of a URL, which is a whole one
// up to its host, as most are.
const headStandIn = "http://0"

func followedBy(segments []expression.Segment, text string) bool {
	return len(segments) > 0 && strings.HasPrefix(segments[0].Text, text)
}
