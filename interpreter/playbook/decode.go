package playbook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// The versions of the language: the current one, and an older one that can also be read.
const (
	Version      = "reprise/v1"
	OlderVersion = "noetl.io/v1"
)

// maxProblems bounds the reported problems of one file. A file that is not a playbook has one on each line, and
// each is rendered with its place.
const maxProblems = 500

// MaxShown bounds the printed problems, so that the first ones remain visible.
const MaxShown = 100

// Decode decodes a playbook and reports all problems it can find, sorted by position. The playbook is nil if
// nothing usable could be decoded; it may run only if no diagnostic is an error. Decoding does not check names,
// routes and tools; see check.Validate.
func Decode(file *source.File) (*Playbook, source.Diagnostics) {
	d := &decoder{Problems: Problems{File: file}, broken: map[*yaml.Node]bool{}, sections: sections}
	pb := readPlaybook(d)
	if pb != nil {
		attachStatements(pb)
		splitRowPaths(pb)
		pb.nameInlined(pb.setAttestation(file.Bytes()))
	}
	d.Found.Sort()
	d.Found.Limit(maxProblems, CodeTooLarge)
	return pb, d.Found
}

// hashData returns the key under which a compiled playbook is cached: a hash of the file's content and the version
// of the language.
func hashData(data []byte) string {
	sum := sha256.New()
	sum.Write([]byte(Version + "\n"))
	sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil))
}

var playbookSection = sectionOf(section{name: "playbook", called: "the playbook"}, []keyOf[Playbook]{
	acceptKey(key{name: "apiVersion", doc: "`reprise/v1`, or `noetl.io/v1` with its spellings", required: "apiVersion: " + Version},
		asOneOf(func(p *Playbook, version string) { p.APIVersion = version }, Version, OlderVersion)),
	acceptKey(key{name: "kind", doc: "`Playbook`", required: "kind: Playbook"}, asOneOf(func(*Playbook, string) {}, "Playbook")),
	acceptKey(key{name: "metadata", doc: "name, description, labels, schedule and triggers", required: "metadata: {name: my_playbook}"},
		readAs(WordSection, func(d *decoder, w written, p *Playbook) { readMetadata(d, w.node, p) }).of(metadataSection)),
	acceptKey(key{name: "timeout", doc: "time limit of the whole run, from its first start"},
		asLimit(func(p *Playbook, v time.Duration) { p.Timeout = v })),
	acceptKey(key{name: "strict", doc: "`true`: a run with a failed iteration is at best `partial_success`"},
		asBoolean(func(p *Playbook, yes bool) { p.Strict = yes })),
	acceptKey(key{name: "notify", doc: "a notice, or a list of them, about events of the run"},
		asNotices(notifySection, func(p *Playbook, notices []*Notice) { p.Notify = notices })),
	acceptKey(key{name: "on_success", doc: "a notice, or a list of them, sent when the run has ended well"},
		asNotices(noticeSection, func(p *Playbook, notices []*Notice) { p.OnSuccess = notices })),
	acceptKey(key{name: "on_failure", doc: "a notice, or a list of them, sent when the run has failed"},
		asNotices(noticeSection, func(p *Playbook, notices []*Notice) { p.OnFailure = notices })),
	acceptKey(key{name: "expect", doc: "when an open run counts as late"},
		readAs(WordSection, readExpect).of(expectSection)),
	acceptKey(key{name: "concurrency", doc: "limits how many runs with the same key are open at a time, and says what happens to the others"},
		asSection(func(p *Playbook, c *Concurrency) { p.Concurrency = c })),
	acceptKey(key{name: "partitions", doc: "divides the work by time or by a list; each run handles one part"},
		readAs(WordKeyed, func(d *decoder, w written, p *Playbook) { readPartitions(d, w.node, p) }).of(partitionsSection)),
	acceptKey(key{name: "state", doc: "prefix for the names of its states; default `metadata.name`"},
		readAs(WordName, func(d *decoder, w written, p *Playbook) {
			p.State, p.StatePos = readPlaybookName(d, w.node, w.what), positionOf(w.node)
		})),
	acceptKey(key{name: "workload", doc: "the inputs, with constants as defaults"},
		readAs(WordConstants, func(d *decoder, w written, p *Playbook) { p.Workload, p.WorkloadPos = d.readConstants(w.node, w.what) })),
	acceptKey(key{name: "output", doc: "the run's result; default: the result of the step that ended last", nullable: true},
		asValue(func(p *Playbook, n *Node) { p.Output = n })),
	acceptKey(key{name: "workbook", doc: "named calls that steps use with `tool: workbook`", nullable: true},
		readAs(WordSections, func(d *decoder, w written, p *Playbook) { p.Workbook = readWorkbook(d, w.node) }).of(workbookSection)),
	acceptKey(key{name: "policies", doc: "named lists of policies, which any `retry` includes with `- use: NAME`", nullable: true},
		readAs(WordLists, func(*decoder, written, *Playbook) {}).of(policySection)),
	acceptKey(key{name: "workflow", doc: "the list of steps", required: "workflow: [{step: start, …}]"},
		readAs(WordSections, func(d *decoder, w written, p *Playbook) { p.Steps = readSteps(d, w.node) }).of(stepSection)),
})

func readPlaybook(d *decoder) *Playbook {
	root := d.parseYAML()
	if root == nil || d.otherLanguage(root) || !d.inspectTree(root) {
		return nil
	}
	d.older = versionOf(root) == OlderVersion
	f, ok := d.readFields(root, playbookSection, playbookSection.sectionTitle())
	if !ok {
		return nil
	}
	pb := &Playbook{File: d.File, Hash: hashData(d.File.Bytes()), Workload: map[string]any{}, WorkloadPos: Words{}}
	readPolicyLists(d, f.getValue("policies"))
	d.readWords(f, pb, at{place: runPlace})
	d.lendRetry(pb)
	pb.lent = slices.Concat(d.lent.lists, d.lent.entries)
	if _, has := pb.Workload[TriggerKey]; len(pb.Triggers) > 0 && !has {
		pb.Workload[TriggerKey] = nil
	}
	pb.secrets = secretSteps(pb.Steps)
	pb.Unread = d.unread
	return pb
}

// versionOf returns apiVersion before anything is decoded, because it determines how keys are read.
func versionOf(root *yaml.Node) string {
	for key, value := range yamltree.Pairs(root) {
		if key.Value == "apiVersion" {
			return value.Value
		}
	}
	return ""
}

// laterNoetl matches versions of noetl.io whose playbooks only look similar.
var laterNoetl = regexp.MustCompile(`^noetl\.io/v([2-9]|[1-9][0-9])`)

// otherLanguage reports a playbook of another language, in which similar words have other meanings, so that the
// rest cannot be checked.
func (d *decoder) otherLanguage(root *yaml.Node) bool {
	version := yamltree.KeyValues(root)["apiVersion"]
	if root.Kind != yaml.MappingNode || version == nil || !laterNoetl.MatchString(version.Value) {
		return false
	}
	d.Errorf(positionOf(version), codeOtherLanguage,
		"%s is another language; nothing else in the file was checked", ShortenText(version.Value))
	return true
}

var metadataSection = sectionOf(section{name: "metadata", prefix: "metadata.", labels: true}, []keyOf[Playbook]{
	acceptKey(key{name: "name", doc: "the playbook's name", required: "name: my_playbook"},
		readAs(WordName, func(d *decoder, w written, p *Playbook) { p.Name = readPlaybookName(d, w.node, w.what) })),
	acceptKey(key{name: "description", doc: "what the playbook is for", nullable: true}, asText(func(p *Playbook, text string) { p.Description = text })),
	acceptKey(key{name: "labels", doc: "a map of texts; `starter list --label NAME=VALUE` finds runs by them"},
		readAs(WordLabels, func(d *decoder, w written, p *Playbook) { p.Labels = d.readLabels(w.node, w.what) })),
	acceptKey(key{name: "schedule", doc: "when `starter schedule` runs the playbook", newer: true},
		asSection(func(p *Playbook, s *Schedule) { p.Schedule = s })),
	acceptKey(key{name: "triggers", doc: "a list of the senders whose signed webhooks start runs", nullable: true, newer: true},
		readAs(WordSections, func(d *decoder, w written, p *Playbook) { p.Triggers = readTriggers(d, w.node, w.what) }).of(triggerSection)),
})

func readMetadata(d *decoder, n *yaml.Node, pb *Playbook) {
	f, ok := d.readFields(n, metadataSection, metadataSection.sectionTitle())
	if !ok {
		return
	}
	d.readWords(f, pb, at{})
	if n := f.getValue("name"); n != nil {
		pb.names = append(pb.names, HeadName{"metadata.name", pb.Name, positionOf(n)})
	}
	if n := f.getValue("labels"); n != nil {
		for i := 0; i+1 < len(n.Content) && pb.Labels != nil; i += 2 {
			pb.names = append(pb.names, HeadName{"the label", n.Content[i].Value, positionOf(n.Content[i])})
		}
	}
	for _, field := range f.rest {
		pb.names = append(pb.names, HeadName{"the label", field.name, field.pos})
	}
	pb.Labels = olderLabels(f, pb.Labels)
}

// readPlaybookName reads the name, which becomes part of workflow IDs.
func readPlaybookName(d *decoder, n *yaml.Node, what string) string {
	name, ok := d.readName(n, what)
	if !ok {
		return ""
	}
	if len(name) > maxPlaybookName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7F }) {
		d.Errorf(positionOf(n), CodeBadName, "%s must be one line of at most %d bytes, not %q", what, maxPlaybookName, ShortenText(name))
		return ""
	}
	return name
}

func (d *decoder) readLabels(n *yaml.Node, what string) map[string]string {
	if isNull(n) || d.broken[n] {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.Errorf(positionOf(n), codeWrongType, "%s must be a map of texts, not %s", what, describeYAML(n))
		return nil
	}
	labels := map[string]string{}
	for key, value := range yamltree.Pairs(n) {
		name := key.Value
		if text, ok := d.readText(value, "the label "+name); ok {
			labels[name] = text
		}
	}
	return labels
}

// olderLabels adds keys that noetl.io/v1 has beside labels, such as path. A label with the same name has
// precedence.
func olderLabels(meta *fields, labels map[string]string) map[string]string {
	for _, field := range meta.rest {
		if labels == nil {
			labels = map[string]string{}
		}
		if _, taken := labels[field.name]; !taken {
			labels[field.name] = field.value.Value
		}
	}
	return labels
}

// isLabel reports whether a key of metadata in noetl.io/v1 is a label rather than a misspelt key.
func isLabel(s *section, key string, n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && !isNull(n) && !strings.Contains(n.Value, "{{") &&
		expression.Suggest(key, s.olderNames()) == ""
}

// DecodeData decodes YAML or JSON that is not a playbook: a workload, the value of a flag, a list of connections. The
// limits and rules of playbooks apply, and numbers are exact. An empty text gives nil. The value may be used if no
// diagnostic is an error.
func DecodeData(file *source.File) (any, source.Diagnostics) {
	if len(bytes.TrimSpace(file.Bytes())) == 0 {
		return nil, nil
	}
	d := &decoder{Problems: Problems{File: file}, broken: map[*yaml.Node]bool{}}
	var value any
	if root := d.parseYAML(); root != nil && d.inspectTree(root) {
		value = d.constantValue(root)
	}
	d.Found.Sort()
	return value, d.Found
}
