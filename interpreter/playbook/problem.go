package playbook

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// Codes of the problems that decoding reports. Each is an anchor of
// docs/reference/diagnostics.md.
var (
	codeAliasCycle         = code("alias-cycle", "a YAML alias is inside of what it repeats")
	codeBadName            = code("bad-name", "a name is empty, too long, or has characters that names must not have")
	codeBadNumber          = code("bad-number", "a number is infinite, no number, or too large")
	codeConflict           = code("conflicting-keys", "two keys of a map exclude each other")
	codeDollarBraces       = code("dollar-braces", "a template has a $ before it, as in GitHub Actions; the $ stays as text (warning)")
	codeDuplicateKey       = code("duplicate-key", "a key occurs twice in a map, or beside another spelling of it")
	codeEmpty              = code("empty", "the file, the workflow or an entry is empty")
	codeEncoding           = code("encoding", "the file is not UTF-8 text")
	CodeLegacyRetry        = code("legacy-retry", "`retry` has an older form; the list to write is shown (warning)")
	codeLegacyWord         = code("legacy-word", "a word has an older name (warning)")
	codeMergeKey           = code("merge-key", "the YAML merge key << is not accepted")
	codeMissingKey         = code("missing-key", "a key is missing")
	CodeNotMigrated        = code("not-migrated", "`starter migrate` leaves something as it is, to be rewritten by hand")
	codeOtherLanguage      = code("other-language", "`apiVersion` names another language, of which nothing is checked")
	codePath               = code("path", "the path of collect cannot be read")
	codeSeveralDocuments   = code("several-documents", "the file holds more than one YAML document")
	codeTabIndentation     = code("tab-indentation", "a line is indented with tabs, which YAML does not allow")
	codeTemplateNotAllowed = code("template-not-allowed", "a template is where the value must be known before the run")
	codeTooDeep            = code("too-deep", "maps and lists are nested too deeply")
	codeTooLarge           = code("too-large", "an expression, statement or playbook is beyond a limit of size")
	codeTooManyAliases     = code("too-many-aliases", "YAML aliases repeat too much")
	codeTooManySteps       = code("too-many-steps", "the workflow has too many steps")
	codeUnknownPolicies    = code("unknown-policies", "`use` names a list that `policies` does not have")
	codeCircularUse        = code("circular-use", "a list of policies uses itself")
	codeUnknownKey         = code("unknown-key", "a section has no such key")
	codeUnquotedTemplate   = code("unquoted-template", "a template without quotes, which YAML reads as a map")
	codeWrongType          = code("wrong-type", "a value is of the wrong type")
	codeWrongValue         = code("wrong-value", "a value is none of those accepted")
	codeYAMLSyntax         = code("yaml-syntax", "the file is not YAML")
	codeYAMLTag            = code("yaml-tag", "a YAML tag or type that playbooks do not have")
)

// decoder carries what the sections share. It lives for one file.
type decoder struct {
	problems

	older bool // noetl.io/v1
	// sections are those of the language. The decoder has them, as what reads a
	// section cannot name all others.
	sections []*section
	// broken are nodes with a problem already reported, so that nothing that
	// follows from it is.
	broken map[*yaml.Node]bool
	// unread are the texts below keys that no section has.
	unread []string
	// spelt are the words of an older form that values of the list come from.
	spelt map[*yaml.Node]string
	lent  lending
	// origins are the conditions that were rewritten.
	origins map[*yaml.Node]*scalarOrigin
}

type scalarOrigin struct {
	origin *origin
	style  source.Style
}

// problems are what was found in a file.
type problems struct {
	file  *source.File
	found source.Diagnostics
}

func (p *problems) errorf(pos source.Position, code, format string, args ...any) {
	p.add(source.Error, pos, code, fmt.Sprintf(format, args...))
}

func (p *problems) warnf(pos source.Position, code, format string, args ...any) {
	p.add(source.Warning, pos, code, fmt.Sprintf(format, args...))
}

func (p *problems) add(severity source.Severity, pos source.Position, code, message string) {
	p.found = append(p.found, source.Diagnostic{
		File: p.file.Name, Pos: pos, Code: code, Message: message, Severity: severity,
	})
}

// offer gives the last problem a fix: a text that is at its place, and what to write instead.
// An empty text is none.
func (p *problems) offer(written, instead string) {
	if instead != "" && written != instead {
		p.found[len(p.found)-1].Fix = source.Fix{Old: written, New: instead}
	}
}

// hint completes a message about a word that is not known.
type hint struct {
	text string
	// word is what to write instead for sure, "" where the text leaves a choice. resembles says
	// that the text names what the word resembles, which is sure where nothing else comes near.
	word      string
	resembles bool
}

// says is a hint that explains, and names no word to write in place of the unknown one.
func says(text string) hint { return hint{text: text} }

// writes is a hint that the present version of the language has another word.
func writes(word string) hint {
	return hint{text: "; " + Version + " writes " + quote(word), word: named(word)}
}

// meant is a hint that asks whether a word was meant which the unknown one resembles.
func meant(word string) hint {
	return hint{text: "; did you mean " + quote(word) + "?", resembles: true}
}

// foreignHint is the hint to what is written in place of a word of another system.
func foreignHint(of foreignWord) hint { return hint{text: "; " + of.text(), word: of.word} }

// named is the word if it is one name, "" for a path.
func named(word string) string {
	if namePattern.MatchString(word) {
		return word
	}
	return ""
}

// certain is what to write for the unknown name for sure, "" for nothing: the word of the hint,
// else the one of those known that the name resembles.
func (h hint) certain(name string, known []string) string {
	if h.word == "" && h.resembles {
		return expression.Certain(name, known)
	}
	return h.word
}

// nearOr is the hint to the word that an unknown one resembles, else to the words accepted.
func nearOr(name string, accepted []string) hint {
	if near := expression.Suggest(name, accepted); near != "" {
		return meant(near)
	}
	if len(accepted) == 1 {
		return says(fmt.Sprintf("; only %q is accepted", accepted[0]))
	}
	return says("; accepted are " + listed(accepted))
}

func position(n *yaml.Node) source.Position { return yamltree.Position(n) }

// describeYAML names a node in a message.
func describeYAML(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a map"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!bool", "!!int", "!!float":
		return n.Value
	}
	return fmt.Sprintf("the text %q", shorten(n.Value))
}

// shorten cuts text of an author for a message.
func shorten(text string) string {
	const most = 60
	return source.Cut(text, most)
}
