package recording

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"reprise/internal/base/secrets"
	"reprise/interpreter/credential"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/yamltree"
)

// header is the comment at the top of recordings.
const header = "# written by starter with --record; secrets were replaced by " + secrets.Stars + "\n"

// ErrTooLarge means that a recording exceeds MaxBytes.
var ErrTooLarge = errors.New("the recording has more than 1 MiB; record fewer pages, or a smaller page")

// Write writes a recording with secrets masked: those that known finds, values of headers that carry credentials, and
// members of bodies whose names suggest secrets. known may be nil.
func Write(w io.Writer, recording *Recording, known *secrets.Masker) error {
	known = cmp.Or(known, &secrets.Masker{})
	answers := &yaml.Node{Kind: yaml.MappingNode}
	for _, step := range recording.Steps {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, entry := range step.Entries {
			list.Content = append(list.Content, entryNode(entry, known))
		}
		addKey(answers, step.Name, list)
	}
	root := &yaml.Node{Kind: yaml.MappingNode}
	if recording.Playbook != "" {
		addKey(root, keyPlaybook, TextNode(recording.Playbook))
	}
	addKey(root, keyAnswers, answers)
	text := yamltree.EncodeNode(root)
	switch {
	case text == "":
		return errors.New("the recording cannot be written as YAML")
	case len(header)+len(text) > MaxBytes:
		return ErrTooLarge
	}
	if _, err := io.WriteString(w, header+text); err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	return nil
}

func entryNode(entry Entry, known *secrets.Masker) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if entry.Request != nil {
		addKey(n, keyRequest, requestNode(entry.Request, known))
	}
	if entry.Element != nil {
		addKey(n, keyElement, ValueNode(MaskedValue(entry.Element.Data, known), true))
	}
	switch {
	case entry.Error != "":
		addKey(n, keyError, TextNode(entry.Error))
	case entry.Result != nil:
		addKey(n, keyResult, ValueNode(MaskedValue(entry.Result.Data, known), false))
	default:
		addKey(n, keyStatus, ValueNode(entry.Status, true))
		if headers := maskedHeaders(entry.Headers, known); len(headers) > 0 {
			addKey(n, keyHeaders, ValueNode(headers, true))
		}
		if entry.Body != nil {
			addKey(n, keyBody, ValueNode(MaskedValue(entry.Body.Data, known), false))
		} else if entry.BodyText != nil {
			addKey(n, keyBodyText, TextNode(maskedText(*entry.BodyText, known)))
		}
	}
	return n
}

func requestNode(request *Request, known *secrets.Masker) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	addKey(n, keyMethod, TextNode(request.Method))
	addKey(n, keyURL, TextNode(maskedText(request.URL, known)))
	if len(request.Params) > 0 {
		addKey(n, keyParams, ValueNode(MaskedValue(request.Params, known), true))
	}
	if headers := maskedHeaders(request.Headers, known); len(headers) > 0 {
		addKey(n, keyHeaders, ValueNode(headers, true))
	}
	if request.Body != nil {
		addKey(n, keyBody, ValueNode(MaskedValue(request.Body.Data, known), true))
	}
	return n
}

func maskedText(text string, known *secrets.Masker) string {
	return credential.WithoutInside(known.MaskText(maskedAddresses(text, known)))
}

var (
	// address matches a URL within a text, and addressPart a part of one.
	address     = regexp.MustCompile(`https?://[^\s"'<>]+`)
	addressPart = regexp.MustCompile(`[^/?&=#]+`)
)

// maskedAddresses masks URLs part by part: otherwise a URL that contains a secret would be masked as a whole, but a
// recording should show where its responses came from.
func maskedAddresses(text string, known *secrets.Masker) string {
	return address.ReplaceAllStringFunc(text, func(found string) string {
		const scheme = len("http")
		return found[:scheme] + addressPart.ReplaceAllStringFunc(found[scheme:], known.MaskText)
	})
}

// withMaskedAddresses masks the URLs in all texts of a value.
func withMaskedAddresses(value any, known *secrets.Masker) any {
	switch of := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(of))
		for key, member := range of {
			shown[key] = withMaskedAddresses(member, known)
		}
		return shown
	case []any:
		return lists.Map(of, func(item any) any { return withMaskedAddresses(item, known) })
	case string:
		return maskedAddresses(of, known)
	}
	return value
}

// maskedHeaders returns masked headers, without those that carry credentials.
func maskedHeaders(headers map[string]string, known *secrets.Masker) map[string]any {
	shown := map[string]any{}
	for _, name := range playbook.SortedKeys(headers) {
		if !credential.HeaderMayHoldSecret(name) {
			shown[name] = maskedText(headers[name], known)
		}
	}
	return shown
}

// MaskedValue masks secrets in a value: texts in which known finds one or that look like one, and members whose names
// suggest one, such as access_token. known may be nil.
func MaskedValue(value any, known *secrets.Masker) any {
	if known != nil {
		value = known.Value(withMaskedAddresses(value, known))
	}
	return starSecrets("", value)
}

// starSecrets masks values whose names suggest secrets. Items of a list have the name of the list.
func starSecrets(name string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(value))
		for _, key := range playbook.SortedKeys(value) {
			shown[key] = starSecrets(key, value[key])
		}
		return shown
	case []any:
		return lists.Map(value, func(item any) any { return starSecrets(name, item) })
	case string:
		if credential.IsMember(name, value) {
			return secrets.Stars
		}
		return credential.WithoutInside(value)
	}
	return value
}

func addKey(n *yaml.Node, key string, value *yaml.Node) {
	n.Content = append(n.Content, TextNode(key), value)
}

// plain matches texts that need no quotes in YAML.
var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$|^[0-9]+(ms|s|m|h)$`)

// words are the words that must be quoted, because YAML, or programs that read it, take them for other values.
var words = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "True", "False", "Null", "Yes", "No", "On", "Off", "TRUE", "FALSE", "NULL", "YES", "NO", "ON", "OFF", "Y", "N"}

// TextNode returns the node of a text, quoted if YAML could take it for something else.
func TextNode(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if !plain.MatchString(text) || slices.Contains(words, text) {
		n.Style = yamltree.QuoteStyle(text)
	}
	return n
}

// shortMap is the largest size of a map or list, in bytes of JSON, that is written on one line.
const shortMap = 60

// ValueNode returns a value as YAML; flow writes it on one line, as short values are anyway.
func ValueNode(value any, flow bool) *yaml.Node {
	switch value := value.(type) {
	case string:
		return TextNode(value)
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode, Style: styleOf(value, flow)}
		for _, key := range playbook.SortedKeys(value) {
			addKey(n, key, ValueNode(value[key], n.Style == yaml.FlowStyle))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: styleOf(value, flow)}
		for _, item := range value {
			n.Content = append(n.Content, ValueNode(item, n.Style == yaml.FlowStyle))
		}
		return n
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(value)}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: expression.Text(value)} // a number
}

func styleOf(value any, flow bool) yaml.Style {
	if encoded, err := expression.Encode(value); flow || err == nil && len(encoded) <= shortMap {
		return yaml.FlowStyle
	}
	return 0
}
