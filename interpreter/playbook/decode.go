package playbook

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// The versions of the language: the one this package is, and the older one
// whose spellings it also reads.
const (
	Version      = "reprise/v1"
	OlderVersion = "noetl.io/v1"
)

// MaxProblems is how many problems of one file are reported.
const MaxProblems = 500

// MaxShown is how many of them are printed.
const MaxShown = 100

// Decode reads a playbook and reports every problem it can see in one go,
// sorted by place. The playbook is nil if nothing usable could be decoded; it
// may be run only if no diagnostic is an error. Decoding says nothing about
// names, routes and tools; see Check.
func Decode(file *source.File) (*Playbook, source.Diagnostics) {
	d := &decoder{file: file, broken: map[*yaml.Node]bool{}}
	pb := d.playbook()
	if pb != nil {
		attachStatements(pb)
	}
	d.found.Sort()
	d.found.Limit(MaxProblems, CodeTooLarge)
	return pb, d.found
}

// hash names the content of a file in this version of the language, as the key
// under which a compiled playbook is kept.
func hash(data []byte) string {
	sum := sha256.New()
	sum.Write([]byte(Version + "\n"))
	sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil))
}

func (d *decoder) playbook() *Playbook {
	root := d.parse()
	if root == nil || d.otherLanguage(root) || !d.inspect(root) {
		return nil
	}
	d.older = versionOf(root) == OlderVersion
	f, ok := d.fields(root, playbookSection, "the playbook")
	if !ok {
		return nil
	}
	pb := &Playbook{File: d.file, Hash: hash(d.file.Bytes()), Workload: map[string]any{}, WorkloadPos: Words{}}
	d.header(pb, f)
	if n := f.get("timeout"); n != nil {
		pb.Timeout = d.timeLimit(n, "timeout")
	}
	if n := f.get("strict"); n != nil {
		pb.Strict = d.boolean(n, "strict")
	}
	if n := f.get("workload"); n != nil {
		pb.Workload, pb.WorkloadPos = d.constants(n, "workload")
	}
	if n := f.get("output"); n != nil && !isNull(n) {
		pb.Output = d.value(n)
	}
	if n := f.get("workbook"); n != nil && !isNull(n) {
		pb.Workbook = d.workbook(n)
	}
	if d.require(f, "the playbook", "workflow", "workflow: [{step: start, …}]") {
		pb.Steps = d.steps(f.get("workflow"))
	}
	pb.secrets = secretSteps(pb.Steps)
	pb.unread = d.unread
	return pb
}

// versionOf looks up apiVersion before anything is decoded, because it decides
// how keys are read.
func versionOf(root *yaml.Node) string {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "apiVersion" {
			return root.Content[i+1].Value
		}
	}
	return ""
}

// laterNoetl are the versions of noetl.io whose playbooks only look alike.
var laterNoetl = regexp.MustCompile(`^noetl\.io/v([2-9]|[1-9][0-9])`)

// otherLanguage reports a playbook of another language, in which words that
// look the same mean something else, so that nothing can be said of the rest.
func (d *decoder) otherLanguage(root *yaml.Node) bool {
	version := yamltree.Keys(root)["apiVersion"]
	if root.Kind != yaml.MappingNode || version == nil || !laterNoetl.MatchString(version.Value) {
		return false
	}
	d.errorf(position(version), CodeOtherLanguage,
		"%s is another language, which is not read here; nothing else in the file was checked", shorten(version.Value))
	return true
}

// header reads apiVersion, kind and metadata.
func (d *decoder) header(pb *Playbook, f *fields) {
	if d.require(f, "the playbook", "apiVersion", "apiVersion: "+Version) {
		pb.APIVersion = d.oneOf(f.get("apiVersion"), "apiVersion", Version, OlderVersion)
	}
	if d.require(f, "the playbook", "kind", "kind: Playbook") {
		d.oneOf(f.get("kind"), "kind", "Playbook")
	}
	if !d.require(f, "the playbook", "metadata", "metadata: {name: my_playbook}") {
		return
	}
	meta, ok := d.fields(f.get("metadata"), metadataSection, "metadata")
	if !ok {
		return
	}
	if d.require(meta, "metadata", "name", "name: my_playbook") {
		pb.Name = d.playbookName(meta.get("name"))
		pb.names = append(pb.names, headName{"metadata.name", pb.Name, position(meta.get("name"))})
	}
	if n := meta.get("description"); n != nil && !isNull(n) {
		pb.Description, _ = d.text(n, "metadata.description")
	}
	if n := meta.get("labels"); n != nil {
		pb.Labels = d.labels(n)
		for i := 0; i+1 < len(n.Content) && pb.Labels != nil; i += 2 {
			pb.names = append(pb.names, headName{"the label", n.Content[i].Value, position(n.Content[i])})
		}
	}
	for _, field := range meta.rest {
		pb.names = append(pb.names, headName{"the label", field.name, field.pos})
	}
	pb.Labels = olderLabels(meta, pb.Labels)
}

// playbookName reads the name, which becomes part of workflow IDs.
func (d *decoder) playbookName(n *yaml.Node) string {
	const most = 200
	name, ok := d.name(n, "metadata.name")
	if !ok {
		return ""
	}
	if len(name) > most || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7F }) {
		d.errorf(position(n), CodeBadName, "metadata.name must be one line of at most %d bytes, not %q", most, shorten(name))
		return ""
	}
	return name
}

func (d *decoder) labels(n *yaml.Node) map[string]string {
	if isNull(n) || d.broken[n] {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.errorf(position(n), CodeWrongType, "metadata.labels must be a map of texts, not %s", describeYAML(n))
		return nil
	}
	labels := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if text, ok := d.text(n.Content[i+1], "the label "+name); ok {
			labels[name] = text
		}
	}
	return labels
}

// olderLabels adds what noetl.io/v1 keeps beside labels, such as path. A label
// of that name counts more.
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

// isLabel reports whether a key of metadata in noetl.io/v1 is a label, and not
// a misspelt key.
func isLabel(key string, n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && !isNull(n) && !strings.Contains(n.Value, "{{") &&
		expression.Suggest(key, metadataSection.names()) == ""
}
