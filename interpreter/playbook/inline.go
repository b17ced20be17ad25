package playbook

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/yamltree"
)

// The fields of PlaybookTool that determine which playbook it runs, and with what.
const (
	FieldWorkflow = "workflow"
	FieldPath     = "path"
	FieldName     = "name"
	FieldNames    = "names"
	FieldWorkload = "workload"
	FieldWait     = "wait"
	// FieldPartition is the key of the partition that the run loads.
	FieldPartition = "partition"
)

// inline has the additional data of a playbook that is part of another one.
type inline struct {
	// source is its text as a separate document.
	source   string
	workflow *yaml.Node
	policies *yaml.Node // the lists of the enclosing playbook that it uses; nil for none
	older    bool       // whether it is in noetl.io/v1
}

// SourceText returns the text of a playbook; for an inline playbook, a separate document for its run, which depends on
// the file only.
func (pb *Playbook) SourceText() string {
	if pb.inline != nil {
		return pb.inline.source
	}
	return string(pb.File.Bytes())
}

// readInlined decodes the inline steps of a call of PlaybookTool. Their expressions belong to the inner playbook,
// so none of them is a template of the call.
func readInlined(d *decoder, field restField) *Playbook {
	before, used := len(d.unread), len(d.lent.usedHere)
	inner := &Playbook{
		File: d.File, Workload: map[string]any{}, WorkloadPos: Words{}, Steps: readSteps(d, field.value),
		inline: &inline{workflow: field.value, older: d.older},
	}
	inner.inline.policies = d.usedLists(used)
	inner.Unread = d.unread[before:]
	inner.secrets = secretSteps(inner.Steps)
	return inner
}

// nameInlined names inline playbooks after the enclosing one, and writes them as separate documents with the
// signatures of the file.
func (pb *Playbook) nameInlined(signatures []Signature) {
	for _, call := range pb.AllCalls() {
		inner := call.Action.Inline
		if inner == nil {
			continue
		}
		name := call.Action.Name
		if call.Step != nil {
			name = call.Step.Name
		}
		inner.Name = nameWithin(pb.Name, name)
		if pb.State != "" && len(inner.KeptStates()) > 0 {
			inner.State = nameWithin(pb.State, name)
		}
		attachStatements(inner)
		inner.inline.source = string(JoinSignatures([]byte(inner.inline.documentText(inner.Name, inner.State)), signatures))
		inner.setAttestation([]byte(inner.inline.source))
		inner.Hash = hashData([]byte(inner.inline.source))
		if workload := call.Action.Field(FieldWorkload); workload != nil {
			for _, entry := range workload.Entries {
				inner.WorkloadPos[entry.Key] = entry.KeyPos
			}
		}
		inner.nameInlined(signatures)
	}
}

// maxPlaybookName bounds metadata.name, in bytes: it is part of workflow IDs, of which Temporal accepts 1,000
// bytes, and of search attributes.
const maxPlaybookName = 200

// nameWithin returns the name of the inline playbook of a step.
func nameWithin(outer, step string) string {
	name := cmp.Or(outer, PlaybookTool) + "." + step
	if len(name) <= maxPlaybookName {
		return name
	}
	const digits = 16
	digest := sha256.Sum256([]byte(outer))
	room := max(maxPlaybookName-len(step)-digits-2, 0)
	for room > 0 && !utf8.RuneStart(outer[room]) {
		room--
	}
	return outer[:room] + "~" + hex.EncodeToString(digest[:])[:digits] + "." + step
}

// documentText returns a playbook with the inline steps as a document.
func (in *inline) documentText(name, state string) string {
	version := Version
	if in.older {
		version = OlderVersion
	}
	text := func(value string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	}
	document := func(workflow *yaml.Node) *yaml.Node {
		made := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
			text("apiVersion"), text(version), text("kind"), text("Playbook"),
			text("metadata"),
			{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{text("name"), text(name)}},
		}}
		if state != "" {
			made.Content = append(made.Content, text("state"), text(state))
		}
		if in.policies != nil {
			made.Content = append(made.Content, text("policies"), in.policies)
		}
		made.Content = append(made.Content, text("workflow"), workflow)
		return made
	}
	workflow := yamltree.WithoutAliases(in.workflow, false)
	written := yamltree.EncodeNode(document(workflow))
	if root, err := yamltree.Parse([]byte(written)); err == nil && sameTree(root.Content[0], document(workflow)) {
		return written
	}
	if in.policies != nil {
		quoteAll(in.policies)
	}
	quoteAll(workflow) // the encoder does not preserve every text in every style
	return yamltree.EncodeNode(document(workflow))
}

// sameTree reports whether two trees have the same values, regardless of style.
func sameTree(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.ShortTag() != b.ShortTag() || a.Value != b.Value || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !sameTree(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

// quoteAll sets the style of every text to double quotes.
func quoteAll(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, inner := range n.Content {
		quoteAll(inner)
	}
}
