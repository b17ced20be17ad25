package playbook

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/credential"
)

// TriggerKey is the workload key with the delivery that started the run: a map of sender, headers and body.
const TriggerKey = "trigger"

// Sender determines how deliveries of a trigger are signed.
type Sender string

// The senders of triggers. HMAC is for any other sender that signs only the body.
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

// The content types of a delivery's body, which must be configured because senders do not sign Content-Type.
const (
	BodyJSON = "json"
	BodyForm = "form"
	BodyText = "text"
)

// ownWords are words of triggers that are only allowed for the sender hmac.
var ownWords = []string{"header", "prefix", "algorithm", "encoding", "body", "id"}

// The forms of identity, which distinguishes deliveries of senders whose bodies have no ID.
const (
	identityBody   = "body"
	identityHeader = "header "
)

// SignatureHeader returns the header with the signature of a delivery.
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

// SignerName returns a name for the owner of the trigger's signing key.
func (t *Trigger) SignerName() string { return cmp.Or(t.Name, t.Secret) }

var triggerSection = sectionOf(section{name: "trigger", called: "an entry of triggers", prefix: "triggers."}, []keyOf[Trigger]{
	acceptKey(key{name: "sender", doc: "who signs the deliveries: `github`, `stripe`, `slack`, or `hmac` for others", required: "sender: github"},
		asOneOf(func(t *Trigger, sender Sender) { t.Sender = sender }, GitHub, Stripe, Slack, HMAC)),
	acceptKey(key{name: "secret", doc: "the name of the connection that holds the signing secret", required: "secret: github_webhook"},
		asName(func(t *Trigger, name string) { t.Secret = name })),
	acceptKey(key{name: "name", doc: "the name of the sender, used in run IDs; default: the name of the secret. Two entries with one name are one sender whose secret is being rotated"},
		readAs(WordName, func(d *decoder, w written, t *Trigger) { t.Name = readSenderName(d, w.node, w.what) })),
	acceptKey(key{name: "headers", doc: "headers of a delivery that the run gets besides the sender's own; they are not signed"},
		readAs(WordTexts, func(d *decoder, w written, t *Trigger) { t.Headers = readHeaderNames(d, w.node, w.what) })),
	acceptKey(key{name: "events", doc: "the events that start a run; default: all. Not with `hmac`"},
		readAs(WordTexts, func(d *decoder, w written, t *Trigger) { t.Events = d.readTexts(w.node, w.what) })),
	acceptKey(key{name: "header", doc: "with `hmac`: the header that has the signature"},
		readAs(WordName, func(d *decoder, w written, t *Trigger) { t.Header = readHeaderName(d, w.node, w.what) })),
	acceptKey(key{name: "prefix", doc: "with `hmac`: what precedes the signature, such as `sha256=`; default: nothing"},
		asText(func(t *Trigger, prefix string) { t.Prefix = prefix })),
	acceptKey(key{name: "algorithm", doc: "with `hmac`: `sha256` (default) or `sha512`"},
		asOneOf(func(t *Trigger, name string) { t.Algorithm = name }, SHA256, SHA512).or(SHA256)),
	acceptKey(key{name: "encoding", doc: "with `hmac`: `hex` (default) or `base64`"},
		asOneOf(func(t *Trigger, name string) { t.Encoding = name }, Hex, Base64).or(Hex)),
	acceptKey(key{name: "body", doc: "with `hmac`: the format of the body, `json` (default), `form` or `text`"},
		asOneOf(func(t *Trigger, kind string) { t.Body = kind }, BodyJSON, BodyForm, BodyText).or(BodyJSON)),
	acceptKey(key{name: "id", doc: "with `hmac`: where the body has the ID of the delivery, such as `event.id`; default: none"},
		readAs(WordName, func(d *decoder, w written, t *Trigger) { t.ID = readBodyPath(d, w.node, w.what) })),
	acceptKey(key{name: "identity", doc: "with `github`, and with `hmac` without `id`: what identifies a delivery. `body` (default) refuses the same body for 24 h; `header NAME` uses a header, which is not signed"},
		readAs(WordName, func(d *decoder, w written, t *Trigger) { t.Identity = readIdentity(d, w.node, w.what) })),
})

// readTriggers reads metadata.triggers. A playbook with triggers has the workload key trigger, which is nil in
// other runs.
func readTriggers(d *decoder, n *yaml.Node, what string) []*Trigger {
	items, _ := d.readItems(n, what)
	return readEach(items, func(n *yaml.Node) *Trigger { return readTrigger(d, n) })
}

func readTrigger(d *decoder, n *yaml.Node) *Trigger {
	f, ok := d.readFields(n, triggerSection, triggerSection.sectionTitle())
	if !ok {
		return nil
	}
	trigger := &Trigger{Pos: f.pos, Algorithm: SHA256, Encoding: Hex, Body: BodyJSON}
	d.readWords(f, trigger, at{})
	if trigger.Sender == HMAC {
		d.requireKeys(f, "an entry of triggers with sender hmac", "header", "header: X-Signature")
		if f.words.Has("events") {
			d.Errorf(f.words["events"], CodeConflict, "with hmac, events are not known; remove events, and use trigger.body in a route")
		}
	} else if trigger.Sender != "" {
		for _, word := range ownWords {
			if f.words.Has(word) {
				d.Errorf(f.words[word], CodeConflict, "%q applies only to sender hmac; %s has a fixed format, so remove it", word, trigger.Sender)
			}
		}
	}
	if f.words.Has("identity") {
		checkIdentity(d, f, trigger)
	}
	if trigger.ID != nil && trigger.Body == BodyText {
		d.Errorf(f.words["id"], CodeConflict, "a text body has no id; equal texts are the same delivery")
	}
	return trigger
}

// readIdentity reads what distinguishes deliveries: a header, or "" for their bodies.
func readIdentity(d *decoder, n *yaml.Node, what string) string {
	text, ok := d.readName(n, what)
	if !ok || text == identityBody {
		return ""
	}
	name, isHeader := strings.CutPrefix(text, identityHeader)
	switch name = strings.TrimSpace(name); {
	case !isHeader || !headerPattern.MatchString(name):
		d.Errorf(positionOf(n), CodeWrongValue, "%s must be body, or header and its name, such as header X-Request-Id, not %q", what, ShortenText(text))
		return ""
	case credential.HeaderMayHoldSecret(name):
		d.Errorf(positionOf(n), CodeConflict, "%s may contain credentials; use the header with the ID of a delivery", name)
		return ""
	}
	return name
}

// checkIdentity reports an identity if something else already distinguishes deliveries.
func checkIdentity(d *decoder, f *fields, t *Trigger) {
	pos := f.words["identity"]
	switch {
	case t.Sender == Stripe, t.Sender == Slack:
		d.Errorf(pos, CodeConflict, "deliveries of %s have a signed ID in their bodies; remove identity", t.Sender)
	case t.ID != nil:
		d.Errorf(pos, CodeConflict, "id (line %d), which is signed, already identifies deliveries; remove identity or id", f.words["id"].Line)
	case t.Identity != "" && strings.EqualFold(t.Identity, t.SignatureHeader()):
		d.Errorf(pos, CodeConflict, "%s is the signature, which is the same for equal bodies; use the header with the ID of a delivery", t.Identity)
	}
}

// senderPattern matches allowed names of senders, which are part of workflow IDs.
var senderPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func readSenderName(d *decoder, n *yaml.Node, what string) string {
	name, ok := d.readName(n, what)
	if ok && !senderPattern.MatchString(name) {
		d.Errorf(positionOf(n), CodeBadName, "%s may have at most 64 letters, digits, _ and -, not %q", what, ShortenText(name))
		return ""
	}
	return name
}

// readBodyPath reads a path to a value in a body.
func readBodyPath(d *decoder, n *yaml.Node, what string) []string {
	text, ok := d.readName(n, what)
	if !ok {
		return nil
	}
	path := strings.Split(text, ".")
	if slices.Contains(path, "") {
		d.Errorf(positionOf(n), CodeBadName, "%s must be names with dots between them, such as event.id, not %q", what, ShortenText(text))
		return nil
	}
	return path
}

// readHeaderNames reads the headers that runs receive. Histories can be read, so headers that prove an identity are
// not allowed.
func readHeaderNames(d *decoder, n *yaml.Node, what string) []string {
	items, ok := d.readItems(n, what)
	if !ok {
		return nil
	}
	names := make([]string, 0, len(items))
	for _, item := range items {
		name := readHeaderName(d, item, "an entry of "+what)
		switch {
		case name == "":
		case credential.HeaderMayHoldSecret(name):
			d.Errorf(positionOf(item), CodeConflict, "%s may contain credentials, which are never passed to a run, because histories can be read", name)
		default:
			names = append(names, name)
		}
	}
	return names
}

// readTexts reads a list of non-empty texts.
func (d *decoder) readTexts(n *yaml.Node, what string) []string {
	items, ok := d.readItems(n, what)
	if !ok {
		return nil
	}
	texts := make([]string, 0, len(items))
	for _, item := range items {
		if text, ok := d.readName(item, "an entry of "+what); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// headerPattern matches names of HTTP headers.
var headerPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")

func readHeaderName(d *decoder, n *yaml.Node, what string) string {
	name, ok := d.readName(n, what)
	if ok && !headerPattern.MatchString(name) {
		d.Errorf(positionOf(n), CodeBadName, "%s must be the name of a header such as X-Signature, not %q", what, ShortenText(name))
		return ""
	}
	return name
}
