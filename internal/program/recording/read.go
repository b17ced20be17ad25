package recording

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// Codes of diagnostics, which playbooks have too.
const (
	codeConflict   = "conflicting-keys"
	codeEmpty      = "empty"
	codeMissingKey = "missing-key"
	codeUnknownKey = "unknown-key"
	codeWrongType  = "wrong-type"
	codeWrongValue = "wrong-value"
)

// Keys of the file.
const (
	keyPlaybook = "playbook"
	keyAnswers  = "answers"
	keyRequest  = "request"
	keyElement  = "element"
	keyStatus   = "status"
	keyHeaders  = "headers"
	keyBody     = "body"
	keyBodyText = "body_text"
	keyError    = "error"
	keyResult   = "result"
	keyMethod   = "method"
	keyURL      = "url"
	keyParams   = "params"
)

// Read parses a recording, with the limits that playbooks have. The recording is usable if no diagnostic is an error.
func Read(file *source.File) (*Recording, source.Diagnostics) {
	value, found := playbook.DecodeData(file)
	if found = found.Errors(); len(found) > 0 {
		return nil, found
	}
	r := &reader{file: file}
	root, err := yamltree.Parse(file.Bytes())
	if err != nil || value == nil { // what Data has read is YAML
		r.errorf(&yaml.Node{Line: 1, Column: 1}, codeEmpty, "the file holds nothing; a recording has the keys %s and %s", keyPlaybook, keyAnswers)
		return nil, r.found
	}
	recording := r.readRecording(part{node: root.Content[0], value: value})
	r.found.Sort()
	return recording, r.found
}

// reader collects the problems of a recording.
type reader struct {
	file  *source.File
	found source.Diagnostics
}

func (r *reader) errorf(at *yaml.Node, code, format string, args ...any) {
	r.found = append(r.found, source.Diagnostic{
		File: r.file.Name, Pos: yamltree.PositionOf(at), Code: code, Message: fmt.Sprintf(format, args...),
	})
}

// part is a value with the node that has its place.
type part struct {
	node  *yaml.Node
	value any
}

// ownNode returns the node, with an alias resolved.
func (p part) ownNode() *yaml.Node {
	if p.node.Kind == yaml.AliasNode {
		return p.node.Alias
	}
	return p.node
}

// memberPart returns the value of a key; false if it is missing.
func (p part) memberPart(key string) (part, bool) {
	members, _ := p.value.(map[string]any)
	value, has := members[key]
	if !has {
		return part{}, false
	}
	return part{node: yamltree.KeyValues(p.ownNode())[key], value: value}, true
}

// keyNodes returns the keys of a map, in the order of the file.
func (p part) keyNodes() []*yaml.Node {
	var all []*yaml.Node
	for key := range yamltree.Pairs(p.ownNode()) {
		all = append(all, key)
	}
	return all
}

// isMap reports a value that is not a map, and unknown keys; if known is empty, any key is accepted.
func (r *reader) isMap(p part, what string, known ...string) bool {
	if _, is := p.value.(map[string]any); !is {
		r.errorf(p.node, codeWrongType, "%s must be a map, not a %s", what, expression.TypeName(p.value))
		return false
	}
	for _, key := range p.keyNodes() {
		if len(known) == 0 || slices.Contains(known, key.Value) {
			continue
		}
		hint := "; expected one of " + strings.Join(known, ", ")
		if near := expression.Suggest(key.Value, known); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		r.errorf(key, codeUnknownKey, "unknown key %q in %s%s", source.CutText(key.Value, 80), what, hint)
	}
	return true
}

func (r *reader) readRecording(root part) *Recording {
	recording := &Recording{}
	if !r.isMap(root, "a recording", keyPlaybook, keyAnswers) {
		return recording
	}
	if of, has := root.memberPart(keyPlaybook); has {
		recording.Playbook = r.readText(of, keyPlaybook)
	}
	answers, has := root.memberPart(keyAnswers)
	if !has {
		r.errorf(root.node, codeMissingKey, "a recording has the key %s, a map of steps with their answers", keyAnswers)
		return recording
	}
	if !r.isMap(answers, keyAnswers) {
		return recording
	}
	for _, key := range answers.keyNodes() {
		of, _ := answers.memberPart(key.Value)
		recording.Steps = append(recording.Steps, Step{Name: key.Value, Entries: r.readEntries(of, keyAnswers+"."+key.Value)})
	}
	return recording
}

func (r *reader) readEntries(list part, what string) []Entry {
	values, is := list.value.([]any)
	if !is {
		r.errorf(list.node, codeWrongType, "%s must be a list of answers, not a %s", what, expression.TypeName(list.value))
		return nil
	}
	entries := make([]Entry, len(values))
	for i, value := range values {
		entries[i] = r.readEntry(part{node: list.ownNode().Content[i], value: value}, what)
	}
	return entries
}

// readEntry reads one answer.
func (r *reader) readEntry(of part, what string) Entry {
	entry := Entry{Pos: yamltree.PositionOf(of.node)}
	what = "an answer of " + what
	if !r.isMap(of, what, keyRequest, keyElement, keyStatus, keyHeaders, keyBody, keyBodyText, keyError, keyResult) {
		return entry
	}
	entry.Element, entry.Body, entry.Result = valueOf(of, keyElement), valueOf(of, keyBody), valueOf(of, keyResult)
	if request, has := of.memberPart(keyRequest); has {
		entry.Request = r.readRequest(request)
	}
	if status, has := of.memberPart(keyStatus); has {
		number, is := status.value.(int)
		if entry.Status = number; !is || number < 100 || number > 599 {
			r.errorf(status.node, codeWrongValue, "%s is a status of HTTP, from 100 to 599", keyStatus)
		}
	}
	if headers, has := of.memberPart(keyHeaders); has {
		entry.Headers = r.readTexts(headers, keyHeaders)
	}
	if text, has := of.memberPart(keyBodyText); has {
		body := r.readText(text, keyBodyText)
		entry.BodyText = &body
	}
	if failure, has := of.memberPart(keyError); has {
		if entry.Error = r.readText(failure, keyError); entry.Error != ErrorConnection && entry.Error != ErrorTimeout {
			r.errorf(failure.node, codeWrongValue, "%s is %s or %s", keyError, ErrorConnection, ErrorTimeout)
		}
	}
	r.checkKind(of, what)
	return entry
}

// checkKind reports an entry that is not exactly one of the three kinds.
func (r *reader) checkKind(of part, what string) {
	var kinds []string
	for _, key := range []string{keyStatus, keyError, keyResult} {
		if _, has := of.memberPart(key); has {
			kinds = append(kinds, key)
		}
	}
	_, body := of.memberPart(keyBody)
	_, text := of.memberPart(keyBodyText)
	_, headers := of.memberPart(keyHeaders)
	switch {
	case len(kinds) == 0:
		r.errorf(of.node, codeMissingKey, "%s has %s (of HTTP), %s (no answer came) or %s (of other tools)", what, keyStatus, keyError, keyResult)
	case len(kinds) > 1:
		r.errorf(of.node, codeConflict, "%s and %s exclude each other", kinds[0], kinds[1])
	case body && text:
		r.errorf(of.node, codeConflict, "%s and %s exclude each other", keyBody, keyBodyText)
	case kinds[0] != keyStatus && (body || text || headers):
		r.errorf(of.node, codeConflict, "%s, %s and %s are those of an answer with %s", keyHeaders, keyBody, keyBodyText, keyStatus)
	}
}

func (r *reader) readRequest(of part) *Request {
	request := &Request{}
	if !r.isMap(of, keyRequest, keyMethod, keyURL, keyParams, keyHeaders, keyBody) {
		return request
	}
	if method, has := of.memberPart(keyMethod); has {
		request.Method = r.readText(method, keyMethod)
	}
	if url, has := of.memberPart(keyURL); has {
		request.URL = r.readText(url, keyURL)
	}
	if params, has := of.memberPart(keyParams); has && r.isMap(params, keyParams) {
		request.Params, _ = params.value.(map[string]any)
	}
	if headers, has := of.memberPart(keyHeaders); has {
		request.Headers = r.readTexts(headers, keyHeaders)
	}
	request.Body = valueOf(of, keyBody)
	return request
}

// valueOf returns the value of a key; nil if it is missing.
func valueOf(of part, key string) *expression.Value {
	member, has := of.memberPart(key)
	if !has {
		return nil
	}
	return &expression.Value{Data: member.value}
}

func (r *reader) readText(of part, what string) string {
	text, is := of.value.(string)
	if !is {
		r.errorf(of.node, codeWrongType, "%s must be text, not a %s", what, expression.TypeName(of.value))
	}
	return text
}

// readTexts returns a map of texts with lower-case keys; numbers become texts, as in retry-after: 3.
func (r *reader) readTexts(of part, what string) map[string]string {
	texts := map[string]string{}
	if !r.isMap(of, what) {
		return texts
	}
	for _, key := range of.keyNodes() {
		member, _ := of.memberPart(key.Value)
		switch member.value.(type) {
		case nil, map[string]any, []any:
			r.errorf(member.node, codeWrongType, "%s.%s must be text, not a %s", what, key.Value, expression.TypeName(member.value))
		}
		texts[strings.ToLower(key.Value)] = expression.Text(member.value)
	}
	return texts
}
