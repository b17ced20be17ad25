package format

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/interpreter/playbook"
)

const keyLists = "lists"

var xmlKeys = []playbook.Field{
	{Name: keyLists, Kind: playbook.KindValue, Default: "none", Doc: "The names of elements that are lists even where there is one of them. orders/order is an order in orders, which is an empty list where there is none."},
}

const (
	attributePrefix = "@"
	textName        = "#text"
	nilName         = "xsi:nil" // XML Schema
	// maxDepth is how deep elements of XML may lie in each other, as for JSON: what walks a value does so by
	// recursion.
	maxDepth = 1000
)

// listsOf reads the field xml, and returns the paths of elements that are always lists.
func listsOf(step string, written map[string]any) ([]string, error) {
	for name := range written {
		if name != keyLists {
			return nil, tool.ConfigErrorf("step %q: xml has no key %q; its key is %s", step, name, keyLists)
		}
	}
	switch v := written[keyLists].(type) {
	case nil:
		return nil, nil
	case []any:
		if names, ok := toTexts(v); ok {
			return names, nil
		}
	case string:
		return []string{v}, nil
	}
	return nil, tool.ConfigErrorf("step %q: xml.lists is %s; it must be the name of an element, or a list of names", step, shownValue(written[keyLists]))
}

var (
	errDocumentType = errors.New("it has a document type declaration, which is not read: its entities could make text of any size, or name files")
	errNoElement    = errors.New("it has no element")
)

// xmlElement is an element whose end is not read yet.
type xmlElement struct {
	name     string
	members  map[string]any // attributes and elements, nil for none
	elements bool           // there are some
	text     []byte
}

// declaration is the encoding that XML says it is in.
var declaration = regexp.MustCompile(`^\s*<\?xml\s[^>]*\bencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']`)

// declarationBytes is how far the declaration reaches.
const declarationBytes = 200

// CharsetOf returns the charset that content is in, as the author says, else what brought it, said, or else XML itself; "" where none does.
func (o Options) CharsetOf(content []byte, said string) string {
	charset := cmp.Or(o.Encoding, said)
	if charset == "" && o.Format == XML {
		if found := declaration.FindSubmatch(content[:min(len(content), declarationBytes)]); found != nil {
			charset = string(found[1])
		}
	}
	return charset
}

// xmlReader makes a value of XML in UTF-8.
type xmlReader struct {
	*xml.Decoder
	lists []string
	open  []*xmlElement
	root  map[string]any
}

// xmlValue is XML in UTF-8 as a map with the name of its one element: an element is the map of its attributes (@name), its elements, of which
// several of one name are a list, and its text (#text); without attributes and elements it is its text, and nil where it has none. Names have their prefixes as they are
// written. Text that is only space between elements is left out. There are no entities but the five of XML, and no document types.
func xmlValue(content []byte, lists []string) (any, error) {
	r := &xmlReader{Decoder: xml.NewDecoder(bytes.NewReader(content)), lists: lists}
	r.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil } // it is UTF-8 by now
	for {
		token, err := r.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = r.addToken(token)
		}
		if err != nil {
			return nil, r.locateError(err)
		}
	}
	switch {
	case len(r.open) > 0:
		return nil, r.locateError(fmt.Errorf("the element %s does not end", r.open[len(r.open)-1].name))
	case r.root == nil:
		return nil, errNoElement
	}
	return r.root, nil
}

// locateError returns an error with the line that the reader has come to.
func (r *xmlReader) locateError(err error) error {
	if syntax, ok := errors.AsType[*xml.SyntaxError](err); ok {
		return &LineError{Line: syntax.Line, Err: errors.New(syntax.Msg)}
	}
	line, _ := r.InputPos()
	return &LineError{Line: line, Err: err}
}

// addToken adds what was read next.
func (r *xmlReader) addToken(token xml.Token) error {
	switch token := token.(type) {
	case xml.StartElement:
		return r.startElement(token)
	case xml.EndElement:
		return r.endElement(writtenName(token.Name))
	case xml.CharData:
		switch {
		case len(r.open) > 0:
			top := r.open[len(r.open)-1]
			top.text = append(top.text, token...)
		case len(bytes.TrimSpace(token)) > 0:
			return errors.New("there is text outside of the element")
		}
	case xml.Directive:
		return errDocumentType
	}
	return nil
}

// writtenName returns an XML name with its prefix, as the document has it.
func writtenName(name xml.Name) string {
	if name.Space == "" {
		return name.Local
	}
	return name.Space + ":" + name.Local
}

func (r *xmlReader) startElement(token xml.StartElement) error {
	element := &xmlElement{name: writtenName(token.Name)}
	switch {
	case r.root != nil:
		return fmt.Errorf("a second element, %s, follows the first", element.name)
	case len(r.open) >= maxDepth:
		return fmt.Errorf("elements are nested more than %d deep", maxDepth)
	}
	for _, attribute := range token.Attr {
		name := writtenName(attribute.Name)
		if len(token.Attr) == 1 && name == nilName && (attribute.Value == "true" || attribute.Value == "1") {
			break // as it is without text
		}
		if !element.setMember(attributePrefix+name, attribute.Value) {
			return fmt.Errorf("the element %s has the attribute %s twice", element.name, name)
		}
	}
	r.open = append(r.open, element)
	return nil
}

// setMember sets a member that does not exist yet.
func (e *xmlElement) setMember(name string, value any) bool {
	if e.members == nil {
		e.members = map[string]any{}
	}
	_, there := e.members[name]
	e.members[name] = value
	return !there
}

func (r *xmlReader) endElement(name string) error {
	if len(r.open) == 0 {
		return fmt.Errorf("</%s> ends nothing", name)
	}
	element := r.open[len(r.open)-1]
	if element.name != name {
		return fmt.Errorf("the element %s is ended by </%s>", element.name, name)
	}
	for _, list := range r.lists {
		if within, item, inside := strings.Cut(list, "/"); inside && within == name && element.members[item] == nil {
			element.setMember(item, []any{})
			element.elements = true
		}
	}
	r.open = r.open[:len(r.open)-1]
	if len(r.open) == 0 {
		r.root = map[string]any{name: r.listValue(name, element.elementValue())}
		return nil
	}
	parent := r.open[len(r.open)-1]
	parent.addElement(name, element.elementValue(), slices.Contains(r.lists, name) || slices.Contains(r.lists, parent.name+"/"+name))
	return nil
}

// listValue returns the value of an element, in a list where its name says so.
func (r *xmlReader) listValue(name string, value any) any {
	if slices.Contains(r.lists, name) {
		return []any{value}
	}
	return value
}

// addElement adds an element to the elements with its name.
func (e *xmlElement) addElement(name string, value any, always bool) {
	e.elements = true
	switch before, there := e.members[name]; {
	case !there && always:
		e.setMember(name, []any{value})
	case !there:
		e.setMember(name, value)
	default:
		list, isList := before.([]any)
		if !isList { // no value of an element is a list
			list = []any{before}
		}
		e.members[name] = append(list, value)
	}
}

// elementValue returns the value of an element that has ended.
func (e *xmlElement) elementValue() any {
	text := string(e.text)
	switch {
	case len(e.members) == 0 && text == "":
		return nil
	case len(e.members) == 0:
		return text
	case text != "" && (!e.elements || strings.TrimSpace(text) != ""):
		e.members[textName] = text
	}
	return e.members
}

// estimateXML estimates the memory that the value of XML takes, in bytes.
func estimateXML(content []byte) int64 {
	elements, attributes := bytes.Count(content, []byte("<")), bytes.Count(content, []byte("="))
	return int64(len(content)) + int64(elements)*(memory.MapBytes+memory.EntryBytes+memory.TextBytes)/2 + int64(attributes)*(memory.EntryBytes+memory.TextBytes)
}
