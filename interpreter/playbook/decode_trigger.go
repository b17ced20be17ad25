package playbook

import (
	"regexp"

	"gopkg.in/yaml.v3"
)

// TriggerKey is the workload key under which a run finds the delivery that
// started it: a map of sender, headers and body.
const TriggerKey = "trigger"

// Sender says how deliveries of a trigger are signed.
type Sender string

// The senders of triggers. HMAC is any other that signs the body alone.
const (
	GitHub Sender = "github"
	Stripe Sender = "stripe"
	Slack  Sender = "slack"
	HMAC   Sender = "hmac"
)

// The words of triggers about signatures, and their defaults.
const (
	SHA256    = "sha256"
	SHA512    = "sha512"
	Hex       = "hex"
	Base64    = "base64"
	hmacIDKey = "id_header"
)

// ownWords are the words of triggers that sender hmac alone has.
var ownWords = []string{"header", "prefix", "algorithm", "encoding", hmacIDKey}

var triggerSection = sectionOf(section{name: "trigger", called: "an entry of triggers", prefix: "triggers."}, []keyOf[Trigger]{
	{
		key{name: "sender", doc: "who signs: `github`, `stripe`, `slack`, or `hmac` for others", required: "sender: github"},
		asOneOf(func(t *Trigger, sender Sender) { t.Sender = sender }, GitHub, Stripe, Slack, HMAC),
	},
	{
		key{name: "secret", doc: "name of the connection that is the secret of the signatures", required: "secret: github_webhook"},
		asName(func(t *Trigger, name string) { t.Secret = name }),
	},
	{
		key{name: "events", doc: "the events that start a run; default all. Not of `hmac`"},
		as(kindTexts, func(d *decoder, w written, t *Trigger) { t.Events = d.texts(w.node, w.what) }),
	},
	{
		key{name: "header", doc: "of `hmac`: the header with the signature"},
		as(kindName, func(d *decoder, w written, t *Trigger) { t.Header = d.headerName(w.node, w.what) }),
	},
	{
		key{name: "prefix", doc: "of `hmac`: what stands before the signature, such as `sha256=`; default nothing"},
		asText(func(t *Trigger, prefix string) { t.Prefix = prefix }),
	},
	{
		key{name: "algorithm", doc: "of `hmac`: `sha256` (default) or `sha512`"},
		asOneOf(func(t *Trigger, name string) { t.Algorithm = name }, SHA256, SHA512).or(SHA256),
	},
	{
		key{name: "encoding", doc: "of `hmac`: `hex` (default) or `base64`"},
		asOneOf(func(t *Trigger, name string) { t.Encoding = name }, Hex, Base64).or(Hex),
	},
	{
		key{name: hmacIDKey, doc: "of `hmac`: the header that names a delivery; default none, and the same body is the same delivery"},
		as(kindName, func(d *decoder, w written, t *Trigger) { t.IDHeader = d.headerName(w.node, w.what) }),
	},
})

// triggers reads metadata.triggers. A playbook that has any has the workload key
// trigger, which is nil in runs that others start.
func (d *decoder) triggers(n *yaml.Node, what string) []*Trigger {
	items, ok := d.items(n, what)
	if !ok {
		return nil
	}
	var triggers []*Trigger
	for _, item := range items {
		if trigger := d.trigger(item); trigger != nil {
			triggers = append(triggers, trigger)
		}
	}
	return triggers
}

func (d *decoder) trigger(n *yaml.Node) *Trigger {
	f, ok := d.fields(n, triggerSection, triggerSection.title())
	if !ok {
		return nil
	}
	trigger := &Trigger{Algorithm: SHA256, Encoding: Hex}
	d.words(f, trigger, at{})
	if trigger.Sender == HMAC {
		d.require(f, "an entry of triggers with sender hmac", "header", "header: X-Signature")
		if f.words.Has("events") {
			d.errorf(f.words["events"], codeConflict, "the events of hmac are not known here; remove events, and look at trigger.body in a route")
		}
	} else if trigger.Sender != "" {
		for _, word := range ownWords {
			if f.words.Has(word) {
				d.errorf(f.words[word], codeConflict, "%q is a word of sender hmac; how %s signs is known, remove it", word, trigger.Sender)
			}
		}
	}
	return trigger
}

// texts reads a list of texts that are not empty.
func (d *decoder) texts(n *yaml.Node, what string) []string {
	items, ok := d.items(n, what)
	if !ok {
		return nil
	}
	texts := make([]string, 0, len(items))
	for _, item := range items {
		if text, ok := d.name(item, "an entry of "+what); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// headerPattern is a name of a header as HTTP has it.
var headerPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")

func (d *decoder) headerName(n *yaml.Node, what string) string {
	name, ok := d.name(n, what)
	if ok && !headerPattern.MatchString(name) {
		d.errorf(position(n), codeBadName, "%s must be the name of a header such as X-Signature, not %q", what, shorten(name))
		return ""
	}
	return name
}
