package playbook

import (
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
)

// literal reports whether the node is a scalar without a template, and says so
// where it is not.
func (d *decoder) literal(n *yaml.Node, what string) bool {
	switch {
	case d.broken[n]:
		return false
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && strings.Contains(n.Value, "{{"):
		d.errorf(position(n), codeTemplateNotAllowed, "%s must be written out: no template is allowed here", what)
		return false
	}
	return true
}

// text reads text that is known before the run.
func (d *decoder) text(n *yaml.Node, what string) (string, bool) {
	if !d.literal(n, what) {
		return "", false
	}
	tag := n.ShortTag()
	if n.Kind != yaml.ScalarNode || tag != "!!str" && tag != "!!timestamp" {
		hint := ""
		if n.Kind == yaml.ScalarNode && tag != "!!null" {
			hint = "; put it in quotes"
		}
		d.errorf(position(n), codeWrongType, "%s must be text, not %s%s", what, describeYAML(n), hint)
		return "", false
	}
	return n.Value, true
}

// name reads text that is not empty.
func (d *decoder) name(n *yaml.Node, what string) (string, bool) {
	text, ok := d.text(n, what)
	if ok && strings.TrimSpace(text) == "" {
		d.errorf(position(n), codeBadName, "%s must not be empty", what)
		return "", false
	}
	return text, ok
}

// oneOf reads one of a few words.
func (d *decoder) oneOf(n *yaml.Node, what string, accepted ...string) string {
	text, ok := d.text(n, what)
	if !ok {
		return ""
	}
	for _, one := range accepted {
		if text == one {
			return text
		}
	}
	d.errorf(position(n), codeWrongValue, "%s cannot be %q%s", what, shorten(text), nearOr(text, accepted).text)
	d.offer(text, expression.Certain(text, accepted))
	return ""
}

func (d *decoder) boolean(n *yaml.Node, what string) bool {
	if !d.literal(n, what) {
		return false
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" {
		v, _ := d.scalar(n).(bool)
		return v
	}
	d.errorf(position(n), codeWrongType, "%s must be true or false, not %s", what, describeYAML(n))
	return false
}

func (d *decoder) integer(n *yaml.Node, what string) (int, bool) {
	if !d.literal(n, what) {
		return 0, false
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" {
		if v, ok := d.scalar(n).(int); ok {
			return v, true
		}
	}
	d.errorf(position(n), codeWrongType, "%s must be a whole number, not %s", what, describeYAML(n))
	return 0, false
}

func (d *decoder) number(n *yaml.Node, what string) (float64, bool) {
	if !d.literal(n, what) {
		return 0, false
	}
	if n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float") {
		return expression.Float(d.scalar(n)) // what is none is reported
	}
	d.errorf(position(n), codeWrongType, "%s must be a number, not %s", what, describeYAML(n))
	return 0, false
}

// scalar is the canonical value of a scalar, by its tag; nil for what it has
// reported.
func (d *decoder) scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		if v, err := strconv.ParseBool(strings.ToLower(n.Value)); err == nil {
			return v
		}
		d.errorf(position(n), codeYAMLTag, "%q is not a boolean, as its tag says", shorten(n.Value))
		return nil
	case "!!int":
		v, err := wholeNumber(n.Value)
		switch {
		case errors.Is(err, expression.ErrLongNumber):
			d.errorf(position(n), codeBadNumber, "%s", err)
		case err != nil:
			d.errorf(position(n), codeYAMLTag, "%q is not a whole number, as its tag says", shorten(n.Value))
		}
		return v
	case "!!float":
		return d.float(n)
	}
	return n.Value
}

// wholeNumber reads the integers of YAML exactly, at any size.
func wholeNumber(text string) (any, error) {
	digits := strings.ReplaceAll(text, "_", "")
	if err := expression.CheckDigits(digits); err != nil { // reading them takes time that grows with the square
		return nil, err
	}
	number, ok := new(big.Int).SetString(digits, 0)
	if !ok {
		return nil, errNotWhole
	}
	return expression.Canonical(json.Number(number.String()))
}

var errNotWhole = errors.New("not a whole number")

func (d *decoder) float(n *yaml.Node) any {
	text := strings.ReplaceAll(n.Value, "_", "")
	if err := expression.CheckDigits(text); err != nil {
		d.errorf(position(n), codeBadNumber, "%s", err)
		return nil
	}
	// The YAML parser takes whole numbers beyond 64 bits for floats.
	if strings.Trim(text, "+-0123456789") == "" {
		if v, err := wholeNumber(strings.TrimLeft(text, "+")); err == nil {
			return v
		}
	}
	v, isNumber := expression.ParseNumber(text)
	if _, isFloat := expression.Float(v); !isNumber || !isFloat {
		d.errorf(position(n), codeBadNumber, "%s is no number that JSON can hold; put it in quotes if it is text", shorten(n.Value))
		return nil
	}
	return v
}
