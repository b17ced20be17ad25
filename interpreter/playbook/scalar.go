package playbook

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
)

// isLiteral reports whether the node is a scalar without a template, and adds a problem if it is not.
func (d *decoder) isLiteral(n *yaml.Node, what string) bool {
	switch {
	case d.broken[n]:
		return false
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && strings.Contains(n.Value, "{{"):
		d.Errorf(positionOf(n), codeTemplateNotAllowed, "%s must not be a template: its value must be known before the run", what)
		return false
	}
	return true
}

// readText reads literal text.
func (d *decoder) readText(n *yaml.Node, what string) (string, bool) {
	if !d.isLiteral(n, what) {
		return "", false
	}
	tag := n.ShortTag()
	if n.Kind != yaml.ScalarNode || tag != "!!str" && tag != "!!timestamp" {
		hint := ""
		if n.Kind == yaml.ScalarNode && tag != "!!null" {
			hint = "; put it in quotes"
		}
		d.Errorf(positionOf(n), codeWrongType, "%s must be text, not %s%s", what, describeYAML(n), hint)
		return "", false
	}
	return n.Value, true
}

// readName reads non-empty text.
func (d *decoder) readName(n *yaml.Node, what string) (string, bool) {
	text, ok := d.readText(n, what)
	if ok && strings.TrimSpace(text) == "" {
		d.Errorf(positionOf(n), CodeBadName, "%s must not be empty", what)
		return "", false
	}
	return text, ok
}

// readChoice reads one of a few words.
func (d *decoder) readChoice(n *yaml.Node, what string, accepted ...string) string {
	text, ok := d.readText(n, what)
	if !ok {
		return ""
	}
	for _, one := range accepted {
		if text == one {
			return text
		}
	}
	d.Errorf(positionOf(n), CodeWrongValue, "%s cannot be %q%s", what, ShortenText(text), similarOrAll(text, accepted).Text)
	d.AddFix(text, expression.SuggestCertain(text, accepted))
	return ""
}

func (d *decoder) readBoolean(n *yaml.Node, what string) bool {
	if !d.isLiteral(n, what) {
		return false
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" {
		v, _ := d.scalarValue(n).(bool)
		return v
	}
	d.Errorf(positionOf(n), codeWrongType, "%s must be true or false, not %s", what, describeYAML(n))
	return false
}

func (d *decoder) readInteger(n *yaml.Node, what string) (int, bool) {
	if !d.isLiteral(n, what) {
		return 0, false
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" {
		if v, ok := d.scalarValue(n).(int); ok {
			return v, true
		}
	}
	d.Errorf(positionOf(n), codeWrongType, "%s must be a whole number, not %s", what, describeYAML(n))
	return 0, false
}

func (d *decoder) readNumber(n *yaml.Node, what string) (float64, bool) {
	if !d.isLiteral(n, what) {
		return 0, false
	}
	if n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float") {
		return expression.NearestFloat(d.scalarValue(n)) // other values are already reported
	}
	d.Errorf(positionOf(n), codeWrongType, "%s must be a number, not %s", what, describeYAML(n))
	return 0, false
}

// freeValue returns the value of a scalar whose type the author leaves to YAML. A number in a form that only YAML has is an
// error: 010 would become 8, 2024_01 would become 202401, and +49 would lose its sign, although each may be meant as text.
func (d *decoder) freeValue(n *yaml.Node) any {
	value := d.scalarValue(n)
	if tag := n.ShortTag(); (tag == "!!int" || tag == "!!float") && value != nil && isChangedByYAML(n.Value) {
		d.Errorf(positionOf(n), codeChangedNumber, "YAML reads %s as the number %s: write %s, or %q in quotes if it is text",
			ShortenText(n.Value), expression.Text(value), expression.Text(value), ShortenText(n.Value))
		return nil
	}
	return value
}

// isChangedByYAML reports whether a number is written in a form that JSON lacks and YAML reads as other digits: with a sign +, zeros in
// front, underscores, or to another base.
func isChangedByYAML(number string) bool {
	digits := strings.TrimPrefix(number, "-")
	return strings.HasPrefix(digits, "+") || strings.Contains(digits, "_") ||
		len(digits) > 1 && digits[0] == '0' && digits[1] != '.' && digits[1] != 'e' && digits[1] != 'E'
}

// scalarValue returns the value of a scalar, according to its tag; nil if it reported a problem.
func (d *decoder) scalarValue(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		if v, err := strconv.ParseBool(strings.ToLower(n.Value)); err == nil {
			return v
		}
		d.Errorf(positionOf(n), codeYAMLTag, "%q is not a boolean, although its tag says so", ShortenText(n.Value))
		return nil
	case "!!int":
		v, err := wholeNumber(n.Value)
		switch {
		case errors.Is(err, expression.ErrLongNumber):
			d.Errorf(positionOf(n), codeBadNumber, "%s", err)
		case err != nil:
			d.Errorf(positionOf(n), codeYAMLTag, "%q is not a whole number, although its tag says so", ShortenText(n.Value))
		}
		return v
	case "!!float":
		return d.floatValue(n)
	}
	return n.Value
}

// wholeNumber parses YAML integers exactly, at any size.
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

func (d *decoder) floatValue(n *yaml.Node) any {
	text := strings.ReplaceAll(n.Value, "_", "")
	if err := expression.CheckDigits(text); err != nil {
		d.Errorf(positionOf(n), codeBadNumber, "%s", err)
		return nil
	}
	// The YAML parser reads whole numbers beyond 64 bits as floats.
	if strings.Trim(text, "+-0123456789") == "" {
		if v, err := wholeNumber(strings.TrimLeft(text, "+")); err == nil {
			return v
		}
	}
	v, isNumber := expression.ParseNumber(text)
	if _, isFloat := expression.NearestFloat(v); !isNumber || !isFloat {
		d.Errorf(positionOf(n), codeBadNumber, "%s is not a number in JSON; put it in quotes if it is text", ShortenText(n.Value))
		return nil
	}
	return v
}

// readDuration reads a duration as authors write it: a Go duration such as 90s or 1m30s, or a number of seconds
// such as 0.5 (docs/concepts/runs.md).
func (d *decoder) readDuration(n *yaml.Node, what string) (time.Duration, bool) {
	if !d.isLiteral(n, what) {
		return 0, false
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		seconds, ok := d.readNumber(n, what)
		if !ok {
			return 0, false
		}
		return d.readSeconds(n, what, seconds)
	case "!!str":
		if length, err := time.ParseDuration(n.Value); err == nil {
			if length < 0 {
				d.Errorf(positionOf(n), CodeBounds, "%s must not be negative, not %s", what, n.Value)
				return 0, false
			}
			return length, true
		}
	}
	d.Errorf(positionOf(n), codeWrongType, "%s must be a duration such as 90s or 1m30s, or a number of seconds, not %s%s",
		what, describeYAML(n), durationHint(n.Value))
	return 0, false
}

func (d *decoder) readSeconds(n *yaml.Node, what string, seconds float64) (time.Duration, bool) {
	const most = float64(math.MaxInt64) / float64(time.Second)
	switch {
	case seconds < 0:
		d.Errorf(positionOf(n), CodeBounds, "%s must not be negative, not %s", what, n.Value)
	case seconds >= most:
		d.Errorf(positionOf(n), CodeBounds, "%s must be less than %.0f seconds, not %s", what, most, n.Value)
	default:
		// Rounded, because 0.3 seconds as a float are not exactly 300 ms.
		return time.Duration(math.Round(seconds * float64(time.Second))), true
	}
	return 0, false
}

// timeLimit reads a positive duration; otherwise is the end of the message about 0, which says what to write.
func (d *decoder) timeLimit(n *yaml.Node, what, otherwise string) time.Duration {
	length, ok := d.readDuration(n, what)
	if ok && length == 0 {
		d.Errorf(positionOf(n), CodeBounds, "%s must be more than 0%s", what, otherwise)
	}
	return length
}

// longUnit matches a number with a unit as people write it.
var longUnit = regexp.MustCompile(`^(\d{1,5}) *(d|days?|w|weeks?|h|hours?|hrs?|m|mins?|minutes?|s|secs?|seconds?)$`)

// durationHint completes a message with the duration that was probably meant.
func durationHint(text string) string {
	match := longUnit.FindStringSubmatch(text)
	if match == nil {
		return ""
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		return ""
	}
	unit := match[2][:1]
	switch unit {
	case "d":
		n, unit = n*24, "h"
	case "w":
		n, unit = n*7*24, "h"
	}
	return fmt.Sprintf("; write %d%s", n, unit)
}
