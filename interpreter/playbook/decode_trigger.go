package playbook

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

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
	SHA256 = "sha256"
	SHA512 = "sha512"
	Hex    = "hex"
	Base64 = "base64"
)

// What the body of a delivery holds. Its sender does not sign its Content-Type.
const (
	BodyJSON = "json"
	BodyForm = "form"
	BodyText = "text"
)

// ownWords are the words of triggers that sender hmac alone has.
var ownWords = []string{"header", "prefix", "algorithm", "encoding", "body", "id"}

// The forms of identity: what distinguishes the deliveries of senders whose bodies have no name of one.
const (
	identityBody   = "body"
	identityHeader = "header "
)

// SignatureHeader is the header in which a delivery has its signature.
func (t *Trigger) SignatureHeader() string {
	switch t.Sender {
	case GitHub:
		return "X-Hub-Signature-256"
	case Stripe:
		return "Stripe-Signature"
	case Slack:
		return "X-Slack-Signature"
	}
	return t.Header
}

// Signer is the name of who signs for the trigger.
func (t *Trigger) Signer() string { return cmp.Or(t.Name, t.Secret) }

var triggerSection = sectionOf(section{name: "trigger", called: "an entry of triggers", prefix: "triggers."}, []keyOf[Trigger]{
	accept(key{name: "sender", doc: "who signs: `github`, `stripe`, `slack`, or `hmac` for others", required: "sender: github"},
		asOneOf(func(t *Trigger, sender Sender) { t.Sender = sender }, GitHub, Stripe, Slack, HMAC)),
	accept(key{name: "secret", doc: "name of the connection that is the secret of the signatures", required: "secret: github_webhook"},
		asName(func(t *Trigger, name string) { t.Secret = name })),
	accept(key{name: "name", doc: "name of the sender, for the runs' IDs; default that of the secret. Two entries of one name are one sender whose secret changes"},
		as(WordName, func(d *decoder, w written, t *Trigger) { t.Name = d.senderName(w.node, w.what) })),
	accept(key{name: "headers", doc: "headers of a delivery, besides the sender's own, that the run gets; they are not signed"},
		as(WordTexts, func(d *decoder, w written, t *Trigger) { t.Headers = d.headerNames(w.node, w.what) })),
	accept(key{name: "events", doc: "the events that start a run; default all. Not of `hmac`"},
		as(WordTexts, func(d *decoder, w written, t *Trigger) { t.Events = d.texts(w.node, w.what) })),
	accept(key{name: "header", doc: "of `hmac`: the header with the signature"},
		as(WordName, func(d *decoder, w written, t *Trigger) { t.Header = d.headerName(w.node, w.what) })),
	accept(key{name: "prefix", doc: "of `hmac`: what precedes the signature, such as `sha256=`; default nothing"},
		asText(func(t *Trigger, prefix string) { t.Prefix = prefix })),
	accept(key{name: "algorithm", doc: "of `hmac`: `sha256` (default) or `sha512`"},
		asOneOf(func(t *Trigger, name string) { t.Algorithm = name }, SHA256, SHA512).or(SHA256)),
	accept(key{name: "encoding", doc: "of `hmac`: `hex` (default) or `base64`"},
		asOneOf(func(t *Trigger, name string) { t.Encoding = name }, Hex, Base64).or(Hex)),
	accept(key{name: "body", doc: "of `hmac`: what the body holds, `json` (default), `form` or `text`"},
		asOneOf(func(t *Trigger, kind string) { t.Body = kind }, BodyJSON, BodyForm, BodyText).or(BodyJSON)),
	accept(key{name: "id", doc: "of `hmac`: where the body names a delivery, such as `event.id`; default none"},
		as(WordName, func(d *decoder, w written, t *Trigger) { t.ID = d.bodyPath(w.node, w.what) })),
	accept(key{name: "identity", doc: "of `github`, and of `hmac` without `id`: what distinguishes deliveries, `body` (default: one that comes again within 24 h is refused) or `header NAME`, which nobody signs"},
		as(WordName, func(d *decoder, w written, t *Trigger) { t.Identity = d.identity(w.node, w.what) })),
})

// triggers reads metadata.triggers. A playbook that has any has the workload key
// trigger, which is nil in runs that others start.
func (d *decoder) triggers(n *yaml.Node, what string) []*Trigger {
	items, _ := d.items(n, what)
	return readEach(items, d.trigger)
}

func (d *decoder) trigger(n *yaml.Node) *Trigger {
	f, ok := d.fields(n, triggerSection, triggerSection.title())
	if !ok {
		return nil
	}
	trigger := &Trigger{Pos: f.pos, Algorithm: SHA256, Encoding: Hex, Body: BodyJSON}
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
	if f.words.Has("identity") {
		d.checkIdentity(f, trigger)
	}
	if trigger.ID != nil && trigger.Body == BodyText {
		d.errorf(f.words["id"], codeConflict, "a body of text has no id; the same text is the same delivery")
	}
	return trigger
}

// identity reads what distinguishes deliveries: a header, or "" for their bodies.
func (d *decoder) identity(n *yaml.Node, what string) string {
	text, ok := d.name(n, what)
	if !ok || text == identityBody {
		return ""
	}
	name, isHeader := strings.CutPrefix(text, identityHeader)
	switch name = strings.TrimSpace(name); {
	case !isHeader || !headerPattern.MatchString(name):
		d.errorf(position(n), codeWrongValue, "%s must be body, or header and its name, such as header X-Request-Id, not %q", what, shorten(text))
		return ""
	case HoldsCredentials(name):
		d.errorf(position(n), codeConflict, "%s may hold credentials; name the header that has the ID of a delivery", name)
		return ""
	}
	return name
}

// checkIdentity refuses what distinguishes deliveries where something else does.
func (d *decoder) checkIdentity(f *fields, t *Trigger) {
	pos := f.words["identity"]
	switch {
	case t.Sender == Stripe, t.Sender == Slack:
		d.errorf(pos, codeConflict, "deliveries of %s have a signed name in their bodies, by which they are known; remove identity", t.Sender)
	case t.ID != nil:
		d.errorf(pos, codeConflict, "deliveries are known by id (line %d), which is signed; remove identity or id", f.words["id"].Line)
	case t.Identity != "" && strings.EqualFold(t.Identity, t.SignatureHeader()):
		d.errorf(pos, codeConflict, "%s has the signature, which is the same for equal bodies; name the header that has the ID of a delivery", t.Identity)
	}
}

// senderPattern is what senders may be called: part of workflow IDs.
var senderPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (d *decoder) senderName(n *yaml.Node, what string) string {
	name, ok := d.name(n, what)
	if ok && !senderPattern.MatchString(name) {
		d.errorf(position(n), codeBadName, "%s has letters, digits, _ and -, at most 64, not %q", what, shorten(name))
		return ""
	}
	return name
}

// bodyPath reads the names that lead to a value in a body.
func (d *decoder) bodyPath(n *yaml.Node, what string) []string {
	text, ok := d.name(n, what)
	if !ok {
		return nil
	}
	path := strings.Split(text, ".")
	if slices.Contains(path, "") {
		d.errorf(position(n), codeBadName, "%s must be names with dots between them, such as event.id, not %q", what, shorten(text))
		return nil
	}
	return path
}

// headerNames reads headers that runs receive. What is in history can be read, so
// no header that proves who somebody is can be among them.
func (d *decoder) headerNames(n *yaml.Node, what string) []string {
	items, ok := d.items(n, what)
	if !ok {
		return nil
	}
	names := make([]string, 0, len(items))
	for _, item := range items {
		name := d.headerName(item, "an entry of "+what)
		switch {
		case name == "":
		case HoldsCredentials(name):
			d.errorf(position(item), codeConflict, "%s may hold credentials, which are passed to no run: its history can be read", name)
		default:
			names = append(names, name)
		}
	}
	return names
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
