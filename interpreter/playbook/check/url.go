package check

import (
	"regexp"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// checkURL warns about values in a url that should probably not be escaped, and reports | raw where nothing is
// escaped: docs/concepts/expressions.md#values-in-a-url.
func checkURL(c *checker) {
	urls := map[*playbook.Node]bool{}
	for _, node := range c.urlNodes() {
		urls[node] = true
		if node.Template != nil {
			checkURLValues(c, node)
		}
	}
	for _, node := range c.filePaths() {
		urls[node] = true
		checkPathValues(c, node)
	}
	for _, call := range c.pb.AllCalls() {
		if rows := call.Action.Rows; rows != nil && rows.Path != nil {
			urls[rows.Path] = true // checkRowPath says what is wrong with it
		}
	}
	for _, at := range c.pb.AllValues() {
		for scalar := range at.Node.Templates() {
			if !urls[scalar] {
				refuseRaw(c, scalar, scalar.Template)
			}
		}
	}
	for _, read := range c.usableStatements() {
		for _, template := range read.parsed.Templates() {
			refuseRaw(c, read.node, template)
		}
	}
}

// urlNodes returns the values that are rendered as URLs.
func (c *checker) urlNodes() []*playbook.Node {
	var nodes []*playbook.Node
	for _, call := range c.pb.AllCalls() {
		nodes = append(nodes, urlNodesOf(call.Action)...)
	}
	for _, step := range c.pb.CallSteps() {
		for next := range step.NextCalls() {
			if next.URL != nil {
				nodes = append(nodes, next.URL)
			}
		}
	}
	return nodes
}

// filePaths returns the values that are rendered as paths of files.
func (c *checker) filePaths() []*playbook.Node {
	var nodes []*playbook.Node
	for _, call := range c.pb.AllCalls() {
		if path := call.Action.Field(playbook.FieldPath); path != nil && path.Template != nil && playbook.TraitsOf(c.toolOf(call.Action)).IntoFile {
			nodes = append(nodes, path)
		}
	}
	return nodes
}

// folderNames matches names of values that may contain several path segments.
var folderNames = regexp.MustCompile(`(?i)(path|folder|dir|directory)$`)

// checkPathValues warns about values that are probably meant to be several path segments.
func checkPathValues(c *checker, node *playbook.Node) {
	if _, single := node.Template.SingleProgram(); single {
		return
	}
	for _, segment := range node.Template.Segments() {
		if segment.Program == nil || segment.Program.IsRaw() || segment.Program.IsWritten() {
			continue
		}
		if name := strings.TrimSpace(segment.Program.Source()); folderNames.MatchString(name) {
			c.Warnf(node.Position(segment.Start), codeURLValue, "{{ %s }} is a single name in the path, in which / becomes %%2F; if it contains several, write {{ %s | raw }}", name, name)
		}
	}
}

func refuseRaw(c *checker, node *playbook.Node, template *expression.Template) {
	for _, segment := range template.Segments() {
		if segment.Program != nil && segment.Program.IsRaw() {
			c.Errorf(node.Pos, codeRawOutsideURL, "%q: raw prevents the escaping of a value in a url or path, but nothing is escaped here; remove \"| raw\"",
				"{{ "+strings.TrimSpace(segment.Program.Source())+" }}")
		}
	}
}

// pathNames matches names of values that may contain more than one path segment.
var pathNames = regexp.MustCompile(`(?i)(path|endpoint|uri|url|href|link|route)$`)

func checkURLValues(c *checker, node *playbook.Node) {
	if _, single := node.Template.SingleProgram(); single {
		return
	}
	segments := node.Template.Segments()
	before := "" // the known part of the URL so far
	for i, segment := range segments {
		if segment.Program == nil {
			before += segment.Text
			continue
		}
		place := playbook.PlaceInURL(before)
		direct := place == playbook.URLHost && strings.HasSuffix(before, headStandIn)
		if place == playbook.URLHead {
			before += headStandIn
		} else {
			before += "0"
		}
		if segment.Program.IsRaw() || segment.Program.IsWritten() {
			continue
		}
		name := strings.TrimSpace(segment.Program.Source())
		pairs := place == playbook.URLQuery && strings.HasSuffix(strings.TrimSuffix(before, "0"), "?") || strings.HasSuffix(before, "&0")
		switch {
		case direct:
			c.Warnf(node.Position(segment.Start), codeURLValue,
				"{{ %s }} may still be part of the host, so it cannot contain a path: write a / before it, or {{ %s | raw }} if it is the path", name, name)
		case place == playbook.URLPath && pathNames.MatchString(name):
			c.Warnf(node.Position(segment.Start), codeURLValue,
				"{{ %s }} is escaped as a single part of the path, including /; if it contains several, write {{ %s | raw }}", name, name)
		case pairs && !followedBy(segments[i+1:], "="):
			c.Warnf(node.Position(segment.Start), codeURLValue,
				"{{ %s }} is escaped as a single value, including & and =; write its pairs in params, or {{ %s | raw }}", name, name)
		}
	}
}

// headStandIn replaces a value at the beginning of a URL, which usually is a URL up to its host.
const headStandIn = "http://0"

func followedBy(segments []expression.Segment, text string) bool {
	return len(segments) > 0 && strings.HasPrefix(segments[0].Text, text)
}

// urlNodesOf returns the fields that are rendered as URLs: the call's own, and those of requests among its fields.
func urlNodesOf(a *playbook.Action) []*playbook.Node {
	var urls []*playbook.Node
	if url := a.Field("url"); url != nil {
		urls = append(urls, url)
	}
	nested := playbook.RequestFields
	if a.ToolTraits().Moves {
		nested = []string{playbook.FieldFrom}
	}
	for _, name := range nested {
		if request := a.Field(name); request != nil {
			for _, entry := range request.Entries {
				if entry.Key == "url" {
					urls = append(urls, entry.Value)
				}
			}
		}
	}
	return urls
}
