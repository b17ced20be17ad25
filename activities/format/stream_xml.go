package format

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
)

// streamElements returns the elements of XML at a path from its first element, each a value as in a whole document. There may be none within the
// element before, which has to be there once. What is around them is read too, and left out.
func streamElements(content *rowReader, path, always []string) iter.Seq2[PlacedRow, error] {
	return func(yield func(PlacedRow, error) bool) {
		r := &elementReader{xmlReader: &xmlReader{Decoder: xml.NewDecoder(content), lists: always}, content: content, path: path}
		r.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil } // it is UTF-8 by now
		for {
			if len(r.open) == 0 {
				content.left = content.most
			}
			token, err := r.RawToken()
			if errors.Is(err, io.EOF) {
				err = r.endDocument()
				if err == nil {
					return
				}
			}
			var row *PlacedRow
			if err == nil {
				row, err = r.nextToken(token)
			}
			switch {
			case err != nil:
				yield(PlacedRow{}, r.locateError(err))
				return
			case row != nil && !yield(*row, nil):
				return
			}
		}
	}
}

// elementReader reads XML around rows. Within one, open has its elements.
type elementReader struct {
	*xmlReader

	content *rowReader
	path    []string
	around  []string // the open elements that no row has
	entered int      // how much of the path was met
	line    int      // in which the row begins
}

// nextToken reads the next token. It returns the row that the token ends; nil for none.
func (r *elementReader) nextToken(token xml.Token) (row *PlacedRow, err error) {
	start, starts := token.(xml.StartElement)
	switch {
	case len(r.open) > 0:
		if err := r.addToken(token); err != nil || r.root == nil {
			return nil, err
		}
		name := r.path[len(r.path)-1]
		value := r.root[name]
		if list, isList := value.([]any); isList {
			value = list[0] // each element is a row, whatever lists says
		}
		r.root = nil
		return &PlacedRow{Value: value, Line: r.line}, nil
	case starts:
		return nil, r.enterElement(start)
	}
	switch token := token.(type) {
	case xml.EndElement:
		name := writtenName(token.Name)
		if len(r.around) == 0 {
			return nil, fmt.Errorf("</%s> ends nothing", name)
		}
		last := len(r.around) - 1
		if r.around[last] != name {
			return nil, fmt.Errorf("the element %s is ended by </%s>", r.around[last], name)
		}
		r.around = r.around[:last]
	case xml.CharData:
		if len(r.around) == 0 && strings.TrimSpace(string(token)) != "" {
			return nil, errors.New("there is text outside of the element")
		}
	case xml.Directive:
		return nil, errDocumentType
	}
	return nil, nil
}

// enterElement begins an element that is no part of a row: a row, one on the way to them, or another one.
func (r *elementReader) enterElement(start xml.StartElement) error {
	name := writtenName(start.Name)
	depth := len(r.around)
	switch {
	case depth == 0 && r.entered > 0:
		return fmt.Errorf("a second element, %s, follows the first", name)
	case depth == 0 && name != r.path[0]:
		return fmt.Errorf("its element is %s, and rows begins with %s", name, r.path[0])
	case depth >= maxDepth:
		return fmt.Errorf("elements are nested more than %d deep", maxDepth)
	}
	isWay := depth < len(r.path) && slices.Equal(r.around, r.path[:depth]) && name == r.path[depth]
	switch {
	case isWay && depth == len(r.path)-1:
		r.entered = len(r.path)
		r.line, _ = r.InputPos()
		return r.startElement(start)
	case isWay && r.entered > depth:
		return fmt.Errorf("it has %s twice", strings.Join(r.path[:depth+1], "."))
	case isWay:
		r.entered = depth + 1
	}
	r.around = append(r.around, name)
	return nil
}

// endDocument returns the error of XML that ends too soon, or has no place for rows.
func (r *elementReader) endDocument() error {
	switch {
	case len(r.open) > 0:
		return fmt.Errorf("the element %s does not end", r.open[len(r.open)-1].name)
	case len(r.around) > 0:
		return fmt.Errorf("the element %s does not end", r.around[len(r.around)-1])
	case r.entered == 0:
		return errNoElement
	case r.entered < len(r.path)-1:
		return fmt.Errorf("it has no %s, where rows says that its rows are", strings.Join(r.path[:len(r.path)-1], "."))
	}
	return nil
}
