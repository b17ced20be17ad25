package playbook

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// Approval is a question to people (docs/reference/tools.md#approval).
type Approval struct {
	Message string         `json:"message,omitempty"` // Markdown, except the ranges in Data
	Options []string       `json:"options"`
	Form    []ApprovalItem `json:"form,omitempty"`
	// OnTimeout is the option that applies if nobody answers in time; "" for none: then the attempt fails.
	OnTimeout string `json:"on_timeout,omitempty"`
	// Data are the ranges of Message that are values, in order. They are plain text, not Markdown.
	Data []expression.Range `json:"message_data,omitempty"`
}

// Piece is a part of a message: the author's words, or a value.
type Piece struct {
	Text   string
	IsData bool
}

// MessageParts returns the parts of the message in order. If Data does not fit Message, the whole message counts as a
// value.
func (a *Approval) MessageParts() []Piece {
	var pieces []Piece
	at := 0
	for _, data := range a.Data {
		if data.From < at || data.To < data.From || data.To > len(a.Message) {
			return []Piece{{Text: a.Message, IsData: true}}
		}
		if at < data.From {
			pieces = append(pieces, Piece{Text: a.Message[at:data.From]})
		}
		pieces = append(pieces, Piece{Text: a.Message[data.From:data.To], IsData: true})
		at = data.To
	}
	if at < len(a.Message) {
		pieces = append(pieces, Piece{Text: a.Message[at:]})
	}
	return pieces
}

// ApprovalItem is a field of an approval's form.
type ApprovalItem struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"` // text, integer, number, boolean or choice
	Title    string   `json:"title,omitempty"`
	Choices  []string `json:"choices,omitempty"` // for type choice
	Required bool     `json:"required,omitempty"`
	Default  any      `json:"default,omitempty"`
}

// The default options of an approval. A person who rejects need not fill in its form.
const (
	OptionApprove = "approve"
	OptionReject  = "reject"
)

// Bounds of an approval.
const (
	// maxApprovalMessage bounds the message of an approval, in bytes. Its template may render data of any size, and
	// the page, summaries and history contain it.
	maxApprovalMessage = 16 << 10
	// maxApprovalItems bounds the fields of an approval's form, which a page shows.
	maxApprovalItems = 50
	// maxApprovalOption bounds each text of an approval's form, in bytes.
	maxApprovalOption = 500
	// maxApprovalText bounds a text that somebody enters into a form, in bytes: it is in the answer, which history
	// keeps.
	maxApprovalText = 4 << 10
)

// resultNames are members that the result of every approval has.
var resultNames = []string{"option", "by", "comment", "at"}

// ApprovalError is an error in a field of an approval.
type ApprovalError struct {
	Field string
	Item  int // index in a list, -1 for none
	text  string
}

func (e *ApprovalError) Error() string { return e.text }

func approvalErrorf(field, format string, args ...any) *ApprovalError {
	return &ApprovalError{field, -1, fmt.Sprintf(format, args...)}
}

// ParseApproval parses an approval from the fields of its tool. The error names the field.
func ParseApproval(fields map[string]any) (*Approval, error) {
	approval, err := parseApproval(fields)
	if err != nil {
		return nil, err
	}
	return approval, nil
}

func parseApproval(fields map[string]any) (*Approval, *ApprovalError) {
	approval := &Approval{Message: expression.Text(fields["message"]), Options: []string{OptionApprove, OptionReject}}
	if len(approval.Message) > maxApprovalMessage {
		return nil, approvalErrorf("message", "message may have at most %d bytes, not %d", maxApprovalMessage, len(approval.Message))
	}
	if options := fields["options"]; options != nil {
		texts, err := textList("options", options)
		if err != nil {
			return nil, err
		}
		approval.Options = texts
	}
	form, isMap := fields["form"].(map[string]any)
	if fields["form"] != nil && !isMap {
		return nil, approvalErrorf("form", "form must be a map of names and their types")
	}
	if len(form) > maxApprovalItems {
		return nil, approvalErrorf("form", "form may have at most %d fields, not %d", maxApprovalItems, len(form))
	}
	for _, name := range SortedKeys(form) {
		item, err := ParseApprovalItem(name, form[name])
		if err != nil {
			return nil, approvalErrorf("form", "form.%s: %s", name, err)
		}
		approval.Form = append(approval.Form, item)
	}
	return approval, approval.checkTimeout(fields["on_timeout"])
}

// SortFields sorts the fields of the form by the order of names.
func (a *Approval) SortFields(names []string) {
	slices.SortStableFunc(a.Form, func(x, y ApprovalItem) int {
		return cmp.Compare(slices.Index(names, x.Name), slices.Index(names, y.Name))
	})
}

func (a *Approval) checkTimeout(onTimeout any) *ApprovalError {
	switch choice := expression.Text(onTimeout); {
	case onTimeout == nil, choice == "fail":
		return nil
	case slices.Contains(a.Options, choice):
		a.OnTimeout = choice
		return nil
	default:
		return approvalErrorf("on_timeout", "on_timeout must be fail or one of the options %s, not %q", strings.Join(a.Options, ", "), choice)
	}
}

// textList reads a list of at least one text.
func textList(name string, v any) ([]string, *ApprovalError) {
	list, isList := v.([]any)
	if !isList || len(list) == 0 {
		return nil, approvalErrorf(name, "%s must be a list of at least one text", name)
	}
	texts := make([]string, len(list))
	for i, item := range list {
		text, isText := item.(string)
		fault := ""
		switch {
		case !isText:
			fault = fmt.Sprintf("%s must be a list of texts, and %s is %s", name, ShortenText(expression.Text(item)), DescribeValue(item))
		case text == "":
			fault = name + " must be a list of texts, and one is empty"
		case len(text) > maxApprovalOption:
			fault = fmt.Sprintf("a text of %s may have at most %d bytes, not %d", name, maxApprovalOption, len(text))
		case slices.Contains(texts[:i], text):
			fault = fmt.Sprintf("%s has %q twice", name, text)
		}
		if fault != "" {
			return nil, &ApprovalError{name, i, fault}
		}
		texts[i] = text
	}
	return texts, nil
}

// ParseApprovalItem parses a field of a form: its type, or a map with type, title, choices, required and default.
func ParseApprovalItem(name string, v any) (ApprovalItem, error) {
	item := ApprovalItem{Name: name, Type: "text"}
	if slices.Contains(resultNames, name) {
		return item, fmt.Errorf("the name is reserved: the result of an approval always has %s", strings.Join(resultNames, ", "))
	}
	described, isMap := v.(map[string]any)
	if !isMap {
		described = map[string]any{"type": v}
	}
	for _, key := range SortedKeys(described) {
		value := described[key]
		switch key {
		case "type":
			item.Type = expression.Text(value)
		case "title":
			item.Title = expression.Text(value)
		case "required":
			item.Required = expression.Truthy(value)
		case "default":
			item.Default = value
		case "choices":
			choices, err := textList("choices", value)
			if err != nil {
				return item, err
			}
			item.Choices = choices
		default:
			return item, fmt.Errorf("unknown key %q; the keys are type, title, choices, required and default", key)
		}
	}
	if !slices.Contains([]string{"text", "integer", "number", "boolean", "choice"}, item.Type) {
		return item, fmt.Errorf("the type is text, integer, number, boolean or choice, not %q", item.Type)
	}
	if (item.Type == "choice") != (len(item.Choices) > 0) {
		return item, errors.New("choices belong to the type choice, which needs them")
	}
	if item.Default == nil {
		return item, nil
	}
	value, err := item.readValue(item.Default)
	item.Default = value
	return item, err
}

// readValue converts a value of the field, which may be given as text, to the field's type.
func (i ApprovalItem) readValue(v any) (any, error) {
	text, isText := v.(string)
	switch i.Type {
	case "integer":
		if n, err := strconv.ParseInt(strings.TrimSpace(expression.Text(v)), 10, 64); err == nil {
			return expression.Canonical(n)
		}
	case "number":
		if n, err := strconv.ParseFloat(strings.TrimSpace(expression.Text(v)), 64); err == nil {
			return expression.Canonical(n)
		}
	case "boolean":
		if is, err := strconv.ParseBool(strings.TrimSpace(expression.Text(v))); err == nil {
			return is, nil
		}
	case "choice":
		if isText && slices.Contains(i.Choices, text) {
			return text, nil
		}
		return nil, fmt.Errorf("must be one of %s, not %s", strings.Join(i.Choices, ", "), strconv.Quote(expression.Text(v)))
	default:
		if isText && len(text) <= maxApprovalText {
			return text, nil
		}
	}
	return nil, fmt.Errorf("must be %s, not %s", i.Type, strconv.Quote(ShortenText(expression.Text(v))))
}

// mostFaults bounds the faults of a form in one error message.
const mostFaults = 20

// FillForm returns the values of the form, which may be given in their types or as text; partly allows required ones to
// be missing. The error lists all faults.
func (a *Approval) FillForm(given map[string]any, partly bool) (map[string]any, error) {
	filled := make(map[string]any, len(a.Form))
	var faults []string
	for _, name := range SortedKeys(given) {
		if !slices.ContainsFunc(a.Form, func(item ApprovalItem) bool { return item.Name == name }) {
			faults = append(faults, fmt.Sprintf("the form has no field %q; its fields are %s", ShortenText(name), strings.Join(lists.Map(a.Form, func(item ApprovalItem) string { return item.Name }), ", ")))
			break // one is enough to see that another form was meant
		}
	}
	for _, item := range a.Form {
		value, err := item.fillValue(given[item.Name], partly)
		if err != nil {
			faults = append(faults, err.Error())
		}
		filled[item.Name] = value
	}
	if left := len(faults) - mostFaults; left > 0 {
		faults = append(faults[:mostFaults], fmt.Sprintf("and %d more", left))
	}
	if len(faults) > 0 {
		return nil, errors.New(strings.Join(faults, "; "))
	}
	return filled, nil
}

// fillValue returns the given value of the field, or its default.
func (i ApprovalItem) fillValue(value any, partly bool) (any, error) {
	if value == nil || value == "" {
		if i.Required && i.Default == nil && !partly {
			return nil, fmt.Errorf("the form needs %s", i.Name)
		}
		return i.Default, nil
	}
	read, err := i.readValue(value)
	if err != nil {
		return nil, fmt.Errorf("%s %w", i.Name, err)
	}
	return read, nil
}
