package playbook

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/interpreter/lists"
)

// Schemes of the names of files that are not on the user's machine: in a worker's folder, or part of the starter.
const (
	NamedScheme   = "name:"
	ExampleScheme = "example:"
)

// PathFrom returns the name of the file at a path in another file; relative paths begin at the folder of that file.
func PathFrom(from, to string) string {
	scheme := ""
	for _, known := range []string{NamedScheme, ExampleScheme} {
		if rest, found := strings.CutPrefix(from, known); found {
			scheme, from = known, rest
		}
	}
	if path.IsAbs(to) {
		return scheme + path.Clean(to)
	}
	return scheme + path.Join(path.Dir(from), to)
}

// fileNames matches names of playbooks in a folder.
var fileNames = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

// PlaybookFileName returns the name of a playbook's file in a worker's folder. The error says what a name must be.
func PlaybookFileName(name string) (string, error) {
	if !fileNames.MatchString(name) {
		return "", fmt.Errorf("%q is not the name of a playbook: write the name of a file in the worker's folder, without .yaml and without a folder", ShortenText(name))
	}
	return NamedScheme + name + ".yaml", nil
}

// CalledFile returns the file that a call of PlaybookTool runs, "" for inline steps. name is the rendered name of the
// call. The error says what a name must be.
func (pb *Playbook) CalledFile(action *Action, name string) (string, error) {
	if node := action.Field(FieldPath); node != nil {
		text, _ := node.Value.(string)
		return PathFrom(pb.File.Name, text), nil
	}
	if node := action.Field(FieldName); node != nil {
		if names := action.CalledNames(); node.Template != nil && !slices.Contains(names, name) {
			return "", fmt.Errorf("name must be one of names (%s), not %q", strings.Join(names, ", "), ShortenText(name))
		}
		return PlaybookFileName(name)
	}
	return "", nil
}

// CalledNames returns the playbooks that a template in the name of a call may select. They must be listed, because
// a run may be started by somebody who must not start others.
func (a *Action) CalledNames() []string {
	if node := a.Field(FieldNames); node != nil {
		return LiteralTexts(node.Value)
	}
	return nil
}

// PlaybookCalls returns the calls of a playbook that run other playbooks.
func (pb *Playbook) PlaybookCalls() []*Action {
	return lists.Pick(pb.AllCalls(), func(call CallAt) (*Action, bool) { return call.Action, call.Action.ToolTraits().Plays })
}

// signatureMark begins a line at the end of a playbook's file that has a signature. Such a line is a comment of YAML.
const signatureMark = "# reprise-signature "

// Signature is what a file says that somebody has signed: the playbook, or one within it, whose name it has. Whether it is right
// depends on the keys of who asks.
type Signature struct {
	Name string
	Text string // base64
}

// signatureLine is a line with a signature. YAML breaks lines at more than a line feed, and what a break hides in such a line would
// be read although nobody has signed it: so a name has printable characters only, and a signature those of base64.
var signatureLine = regexp.MustCompile(`^` + signatureMark + `([\pL\pM\pN\pP\pS ]+): ([A-Za-z0-9+/]{86}==)$`)

// SplitSignatures takes the signatures off the end of a file.
func SplitSignatures(data []byte) (signed []byte, all []Signature) {
	for {
		line := bytes.TrimSuffix(data, []byte("\n"))
		start := bytes.LastIndexByte(line, '\n') + 1
		found := signatureLine.FindSubmatch(line[start:])
		if found == nil || !utf8.Valid(line[start:]) {
			return data, all
		}
		all = append([]Signature{{Name: string(found[1]), Text: string(found[2])}}, all...)
		data = data[:start]
	}
}

// JoinSignatures is a file with signatures behind it, in place of those that it has.
func JoinSignatures(data []byte, all []Signature) []byte {
	signed, _ := SplitSignatures(data)
	joined := bytes.Clone(signed)
	for _, one := range all {
		joined = append(joined, signatureMark+one.Name+": "+one.Text+"\n"...)
	}
	return joined
}

// UnsignedDigest is the SHA-256 of a playbook's bytes without signatures, in base64 for URLs.
func UnsignedDigest(signed []byte) string {
	sum := sha256.Sum256(signed)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// SignedMessage is what a signature of a playbook signs.
func SignedMessage(name, digest string) []byte {
	return []byte("reprise playbook\n" + digest + "\n" + name)
}

// Attestation says which bytes a playbook was read from, and who stands for them. Kept in workflow history, in the input of each
// attempt.
type Attestation struct {
	// Digest is that of the bytes; "" in inputs that were made before there was one.
	Digest string `json:"digest,omitempty"`
	// Signature is what the file has of the playbook; "" for none.
	Signature string `json:"signature,omitempty"`
}

// Attestation returns the attestation of the bytes with which a run of the playbook starts. An inline playbook has
// bytes of its own.
func (pb *Playbook) Attestation() Attestation { return pb.attestation }

// setAttestation sets the attestation by the text that the playbook is read from, and returns the signatures of the text.
func (pb *Playbook) setAttestation(text []byte) []Signature {
	signed, all := SplitSignatures(text)
	pb.attestation = Attestation{Digest: UnsignedDigest(signed)}
	for _, one := range all {
		if one.Name == pb.Name {
			pb.attestation.Signature = one.Text
		}
	}
	return all
}

// WithInlined are the playbook and those within it, at any depth.
func (pb *Playbook) WithInlined() []*Playbook {
	all := []*Playbook{pb}
	for _, call := range pb.AllCalls() {
		if call.Action.Inline != nil {
			all = append(all, call.Action.Inline.WithInlined()...)
		}
	}
	return all
}
