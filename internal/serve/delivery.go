package serve

import (
	"cmp"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// delivery is what a sender tells with a signed request.
type delivery struct {
	id      string // the same when the sender repeats it
	event   string // "" where the sender has none
	trigger map[string]any
	body    any
}

// form is the content type of HTML forms, which Slack and GitHub can send.
const form = "application/x-www-form-urlencoded"

// readDelivery takes a signed request apart.
func readDelivery(trigger *playbook.Trigger, header http.Header, body []byte) (delivery, error) {
	if !utf8.Valid(body) {
		return delivery{}, badRequest("the body is not UTF-8")
	}
	value, err := deliveryBody(header.Get("Content-Type"), body)
	if err != nil {
		return delivery{}, err
	}
	d := delivery{id: hashOf(body), body: value}
	switch trigger.Sender {
	case playbook.GitHub:
		d.event, d.id = header.Get("X-GitHub-Event"), cmp.Or(header.Get("X-GitHub-Delivery"), d.id)
	case playbook.Stripe:
		d.event, d.id = textAt(value, "type"), cmp.Or(textAt(value, "id"), d.id)
	case playbook.Slack:
		d.event = cmp.Or(textAt(value, "event", "type"), textAt(value, "payload", "type"), textAt(value, "type"), textAt(value, "command"))
		d.id = cmp.Or(textAt(value, "event_id"), textAt(value, "payload", "trigger_id"), textAt(value, "trigger_id"), d.id)
	case playbook.HMAC:
		if trigger.IDHeader != "" {
			d.id = cmp.Or(header.Get(trigger.IDHeader), d.id)
		}
	}
	d.trigger = map[string]any{"sender": string(trigger.Sender), "headers": deliveryHeaders(trigger, header), "body": value}
	return d, nil
}

// starts reports whether a run is started for the delivery.
func (d delivery) starts(trigger *playbook.Trigger) bool {
	if trigger.Sender == playbook.GitHub && d.event == "ping" {
		return false
	}
	return trigger.Events == nil || slices.Contains(trigger.Events, d.event)
}

// deliveryBody is the value of a body: of JSON and of forms what they hold, else
// the text.
func deliveryBody(contentType string, body []byte) (any, error) {
	kind, _, _ := mime.ParseMediaType(contentType)
	switch {
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		value, err := expression.Decode(body)
		if err != nil {
			return nil, badRequest("the body: %v", err)
		}
		return value, nil
	case kind == form:
		return formBody(body)
	}
	return string(body), nil
}

// formBody is a form as a map. The field payload, where senders put JSON, is read.
func formBody(body []byte) (any, error) {
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, badRequest("the body is no form")
	}
	fields := make(map[string]any, len(values))
	for name, texts := range values {
		name = strings.ToValidUTF8(name, "\uFFFD")
		list := make([]any, len(texts))
		for i, text := range texts {
			list[i] = strings.ToValidUTF8(text, "\uFFFD")
		}
		fields[name] = list
		if len(list) == 1 {
			fields[name] = list[0]
		}
	}
	if text, ok := fields["payload"].(string); ok {
		if value, err := expression.Decode([]byte(text)); err == nil {
			fields["payload"] = value
		}
	}
	return fields, nil
}

// mostHeaders bounds the headers that a run is told, in bytes of each.
const mostHeaders = 1000

// deliveryHeaders are those that say something of a delivery; none is a secret or
// a signature.
func deliveryHeaders(trigger *playbook.Trigger, header http.Header) map[string]any {
	told := map[string]any{}
	for name, values := range header {
		lower := strings.ToLower(name)
		tells := lower == "content-type"
		switch trigger.Sender {
		case playbook.GitHub:
			tells = tells || strings.HasPrefix(lower, "x-github-")
		case playbook.Slack:
			tells = tells || lower == "x-slack-retry-num"
		case playbook.HMAC:
			tells = tells || strings.HasPrefix(lower, "x-") && !strings.EqualFold(name, trigger.Header)
		}
		if value := values[0]; tells && len(value) <= mostHeaders {
			told[lower] = strings.ToValidUTF8(value, "\uFFFD")
		}
	}
	return told
}

// textAt is a text inside of maps, "" where there is none.
func textAt(value any, path ...string) string {
	for _, key := range path {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	text, _ := value.(string)
	return text
}
