package serve

import (
	"bytes"
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"reprise/interpreter/playbook"
)

// delivery is the content of a signed request.
type delivery struct {
	// id identifies a delivery and its repetitions. Unless the author names a header, it is derived from what is
	// signed: otherwise a copy of a delivery with another ID could start another run.
	id string
	// byBody is set if only its body identifies the delivery, which another delivery may have too.
	byBody  bool
	event   string // "" where the sender has none
	trigger map[string]any
	body    any
}

// readDelivery parses a signed request.
func readDelivery(trigger *playbook.Trigger, header http.Header, body []byte) (delivery, error) {
	value, err := deliveryBody(trigger, body)
	if err != nil {
		return delivery{}, err
	}
	d := delivery{body: value}
	switch trigger.Sender {
	case playbook.GitHub:
		d.event = valueOf(header, "X-GitHub-Event")
	case playbook.Stripe:
		d.event, d.id = textAt(value, "type"), textAt(value, "id")
	case playbook.Slack:
		d.event = cmp.Or(textAt(value, "event", "type"), textAt(value, "payload", "type"), textAt(value, "type"), textAt(value, "command"))
		d.id = cmp.Or(textAt(value, "event_id"), textAt(value, "payload", "trigger_id"), textAt(value, "trigger_id"))
	case playbook.HMAC:
		if trigger.ID != nil {
			d.id = textAt(value, trigger.ID...)
		}
	}
	if trigger.Identity != "" {
		if d.id, err = identityOf(header, trigger.Identity); err != nil {
			return delivery{}, err
		}
	}
	d.byBody = d.id == ""
	d.id = cmp.Or(d.id, hashOf(body))
	d.trigger = map[string]any{"sender": string(trigger.Sender), "headers": deliveryHeaders(trigger, header), "body": value}
	return d, nil
}

// startsRun reports whether the delivery starts a run.
func (d delivery) startsRun(trigger *playbook.Trigger) bool {
	if trigger.Sender == playbook.GitHub && d.event == "ping" {
		return false
	}
	return trigger.Events == nil || slices.Contains(trigger.Events, d.event)
}

// deliveryBody decodes a body. Its format is given by the trigger or recognized from the body itself, since the
// Content-Type is not signed: GitHub and Slack send JSON or a form.
func deliveryBody(trigger *playbook.Trigger, body []byte) (any, error) {
	kind := trigger.Body
	switch trigger.Sender {
	case playbook.GitHub, playbook.Slack:
		kind = playbook.BodyForm
		if looksLikeJSON(body) {
			kind = playbook.BodyJSON
		}
	case playbook.Stripe:
		kind = playbook.BodyJSON
	}
	switch {
	case kind == playbook.BodyForm:
		return formBody(body)
	case kind == playbook.BodyJSON:
		return readJSON(body)
	case !utf8.Valid(body):
		return nil, badRequest("the body is not valid UTF-8")
	}
	return string(body), nil
}

// looksLikeJSON reports whether a text begins like a JSON object or array, and so is not a form.
func looksLikeJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return bytes.HasPrefix(text, []byte("{")) || bytes.HasPrefix(text, []byte("["))
}

// formBody decodes a form to a map. JSON in the field payload, where senders put it, is decoded too.
func formBody(body []byte) (any, error) {
	values, err := readFields(body)
	if err != nil {
		return nil, err
	}
	fields := make(map[string]any, len(values))
	for name := range values {
		fields[name] = values.Get(name)
	}
	if payload := values.Get("payload"); looksLikeJSON([]byte(payload)) {
		if fields["payload"], err = readJSON([]byte(payload)); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// readFields parses a form, which must be UTF-8 without duplicate fields.
func readFields(body []byte) (url.Values, error) {
	fields, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, badRequest("the body is not a valid form")
	}
	for name, values := range fields {
		if len(values) > 1 {
			return nil, badRequest("the form has the field %q twice", name)
		}
		if !utf8.ValidString(name) || !utf8.ValidString(values[0]) {
			return nil, badRequest("the form is not valid UTF-8")
		}
	}
	return fields, nil
}

// mostHeaders bounds each header that is passed to a run, in bytes: the sender chooses them, and they are stored in
// history.
const mostHeaders = 1000

// deliveryHeaders returns the headers that the trigger names, and those of its sender that describe a delivery. None
// is a secret or a signature.
func deliveryHeaders(trigger *playbook.Trigger, header http.Header) map[string]any {
	names := slices.Clone(trigger.Headers)
	switch trigger.Sender {
	case playbook.GitHub:
		names = append(names, "X-GitHub-Event", "X-GitHub-Delivery")
	case playbook.Slack:
		names = append(names, "X-Slack-Retry-Num")
	}
	headers := map[string]any{}
	for _, name := range names {
		if value := valueOf(header, name); value != "" && len(value) <= mostHeaders {
			headers[strings.ToLower(name)] = strings.ToValidUTF8(value, "\uFFFD")
		}
	}
	return headers
}

// identityOf returns the value of the header that identifies a delivery.
func identityOf(header http.Header, name string) (string, error) {
	values := header.Values(name)
	switch {
	case len(values) == 0 || values[0] == "":
		return "", badRequest("the delivery lacks the header %s, which identifies it (metadata.triggers, identity); nothing was started", name)
	case len(values) > 1 || !printable.MatchString(values[0]):
		return "", badRequest("the header %s, which identifies a delivery, must occur once and have at most 255 printable ASCII characters; nothing was started", name)
	}
	return values[0], nil
}

// valueOf returns the value of a header; if it occurs several times, all values.
func valueOf(header http.Header, name string) string { return strings.Join(header.Values(name), ", ") }

// textAt returns a text, or a whole number, at a path of maps; "" if there is none.
func textAt(value any, path ...string) string {
	for _, key := range path {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	if number, ok := value.(int); ok {
		return strconv.Itoa(number)
	}
	text, _ := value.(string)
	return text
}
