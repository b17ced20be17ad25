package playbook

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// Codes of the problems that decoding reports. Each is an anchor of docs/reference/diagnostics.md.
var (
	codeAliasCycle         = codeDoc("alias-cycle", "a YAML alias is inside its own anchor")
	CodeBadName            = codeDoc("bad-name", "a name is empty, too long, or has characters that are not allowed in names")
	codeBadNumber          = codeDoc("bad-number", "a number is infinite, not a number, or too large")
	codeChangedNumber      = codeDoc("changed-number", "a number is written in a form that YAML reads as other digits, such as 010")
	CodeConflict           = codeDoc("conflicting-keys", "two keys of a map exclude each other")
	codeDollarBraces       = codeDoc("dollar-braces", "a template has a $ in front of it, as in GitHub Actions; the $ stays as text (warning)")
	CodeDuplicateKey       = codeDoc("duplicate-key", "a key occurs twice in a map, or together with another spelling of it")
	codeEmpty              = codeDoc("empty", "the file, the workflow or an entry is empty")
	codeEncoding           = codeDoc("encoding", "the file is not UTF-8 text")
	CodeLegacyRetry        = codeDoc("legacy-retry", "`retry` has an older form; the message shows the current one (warning)")
	codeLegacyWord         = codeDoc("legacy-word", "a key has an older name (warning)")
	codeMergeKey           = codeDoc("merge-key", "the YAML merge key << is not accepted")
	CodeMissingKey         = codeDoc("missing-key", "a key is missing")
	CodeNotMigrated        = codeDoc("not-migrated", "`starter migrate` cannot rewrite something; rewrite it by hand")
	codeOtherLanguage      = codeDoc("other-language", "`apiVersion` names another language, so the file is not checked")
	codePath               = codeDoc("path", "the path of collect is invalid")
	codeSeveralDocuments   = codeDoc("several-documents", "the file holds more than one YAML document")
	codeTabIndentation     = codeDoc("tab-indentation", "a line is indented with tabs, which YAML does not allow")
	codeTemplateNotAllowed = codeDoc("template-not-allowed", "a template is used where the value must be known before the run")
	codeTooDeep            = codeDoc("too-deep", "maps and lists are nested too deeply")
	CodeTooLarge           = codeDoc("too-large", "an expression, statement or playbook is too large")
	codeTooManyAliases     = codeDoc("too-many-aliases", "YAML aliases repeat too much")
	codeTooManySteps       = codeDoc("too-many-steps", "the workflow has too many steps")
	codeUnknownPolicies    = codeDoc("unknown-policies", "`use` names a list that `policies` does not have")
	codeCircularUse        = codeDoc("circular-use", "a list of policies uses itself")
	CodeUnknownKey         = codeDoc("unknown-key", "a section has no such key")
	codeUnquotedTemplate   = codeDoc("unquoted-template", "a template has no quotes, so YAML reads it as a map")
	codeWrongType          = codeDoc("wrong-type", "a value has the wrong type")
	CodeWrongValue         = codeDoc("wrong-value", "a value is not one of the accepted values")
	codeYAMLSyntax         = codeDoc("yaml-syntax", "the file is not YAML")
	codeYAMLTag            = codeDoc("yaml-tag", "a YAML tag or type is not supported in playbooks")
)

// decoder has the state that the sections share while one file is decoded.
type decoder struct {
	Problems

	older bool // the file is in noetl.io/v1
	// sections are the sections of the language. They are stored here because functions that read a section cannot
	// refer to all others.
	sections []*section
	// broken are nodes with a reported problem. Problems that follow from it are not reported.
	broken map[*yaml.Node]bool
	// unread are the texts below unknown keys.
	unread []string
	// spelt has the words of an older form from which values of the list were converted.
	spelt map[*yaml.Node]string
	lent  lending
	// origins are the conditions that were rewritten.
	origins map[*yaml.Node]*scalarOrigin
}

type scalarOrigin struct {
	origin *origin
	style  source.Style
}

// Problems are the problems found in a file.
type Problems struct {
	File  *source.File
	Found source.Diagnostics
}

// Errorf adds an error.
func (p *Problems) Errorf(pos source.Position, code, format string, args ...any) {
	p.AddProblem(source.Error, pos, code, fmt.Sprintf(format, args...))
}

// Warnf adds a warning.
func (p *Problems) Warnf(pos source.Position, code, format string, args ...any) {
	p.AddProblem(source.Warning, pos, code, fmt.Sprintf(format, args...))
}

// AddProblem adds a problem with a severity.
func (p *Problems) AddProblem(severity source.Severity, pos source.Position, code, message string) {
	p.Found = append(p.Found, source.Diagnostic{
		File: p.File.Name, Pos: pos, Code: code, Message: message, Severity: severity,
	})
}

// AddFix adds a fix to the last problem: the text at its position, and its replacement; an empty replacement adds
// nothing.
func (p *Problems) AddFix(written, instead string) {
	if instead != "" && written != instead {
		p.Found[len(p.Found)-1].Fix = source.Fix{Old: written, New: instead}
	}
}

// Hint completes a message about an unknown word.
type Hint struct {
	Text string
	// Word is the certain replacement, "" if there is a choice. resembles says that the replacement was chosen by
	// similarity; it is certain only if no other word is as similar.
	Word      string
	resembles bool
}

// PlainHint returns a hint that explains, without a replacement for the unknown word.
func PlainHint(text string) Hint { return Hint{Text: text} }

// writeInstead returns a hint that the current version of the language uses another word.
func writeInstead(word string) Hint {
	return Hint{Text: "; " + Version + " writes " + QuoteWord(word), Word: nameOnly(word)}
}

// DidYouMean returns a hint that suggests a similar word.
func DidYouMean(word string) Hint {
	return Hint{Text: "; did you mean " + QuoteWord(word) + "?", resembles: true}
}

// foreignHint returns a hint with the replacement for a word of another system.
func foreignHint(of ForeignWord) Hint { return Hint{Text: "; " + of.Text(), Word: of.word} }

// nameOnly returns the word if it is a single name, "" for a path.
func nameOnly(word string) string {
	if NamePattern.MatchString(word) {
		return word
	}
	return ""
}

// CertainReplacement returns the certain replacement for an unknown name, "" for none: the word of the hint, otherwise the
// known name that it resembles.
func (h Hint) CertainReplacement(name string, known []string) string {
	if h.Word == "" && h.resembles {
		return expression.SuggestCertain(name, known)
	}
	return h.Word
}

// similarOrAll returns a hint with a similar accepted word, otherwise with all accepted words.
func similarOrAll(name string, accepted []string) Hint {
	if near := expression.Suggest(name, accepted); near != "" {
		return DidYouMean(near)
	}
	if len(accepted) == 1 {
		return PlainHint(fmt.Sprintf("; only %q is accepted", accepted[0]))
	}
	return PlainHint("; accepted are " + JoinNames(accepted))
}

func positionOf(n *yaml.Node) source.Position { return yamltree.PositionOf(n) }

// describeYAML describes a node for a message.
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
	return fmt.Sprintf("the text %q", ShortenText(n.Value))
}

// ShortenText shortens an author's text for a message.
func ShortenText(text string) string {
	const most = 60
	return source.CutText(text, most)
}

// JoinNames joins names for a message; long lists are cut off.
func JoinNames(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// DescribeValue describes a value for a message: its text if short, otherwise its type.
func DescribeValue(v any) string {
	if s, ok := v.(string); ok && len(s) <= 40 {
		return `"` + s + `"`
	}
	name := expression.TypeName(v)
	if strings.ContainsAny(name[:1], "aeiou") {
		return "an " + name
	}
	if v == nil {
		return name
	}
	return "a " + name
}

// Codes that checks report too.
var (
	CodeBounds            = codeDoc("bounds", "a number or duration is out of bounds")
	CodeDuplicateEntry    = codeDoc("duplicate-entry", "two entries of the workbook have the same name")
	CodeElementInStepSink = codeDoc("element-in-step-sink", "the sink of a step uses the element of its loop; `loop.sink` runs once per iteration")
	CodeRouter            = codeDoc("router", "a step without a tool has retry, loop, incremental or sink")
)

// ownCodes are the codes of this package.
var ownCodes []CodeDoc

// codeDoc registers a code with its meaning, for the documents, and returns it.
func codeDoc(name, meaning string) string {
	ownCodes = append(ownCodes, CodeDoc{name, meaning})
	return name
}

// CodeDoc is a code with its meaning.
type CodeDoc struct {
	Code    string
	Meaning string // one line
}

// DecodingCodes returns the codes of diagnostics that decoding reports, including those of expressions and SQL.
func DecodingCodes() []CodeDoc { return slices.Concat(ownCodes, expressionCodes, statementCodes) }

// expressionCodes are the codes of package expression.
var expressionCodes = []CodeDoc{
	{"ambiguous", "an expression is read differently by Jinja and expr"},
	{"arguments", "a function has too few or too many arguments"},
	{"condition-text", "a condition has text outside the braces"},
	{"jinja-block", "a template has a Jinja block, such as {% if %}, which is not supported"},
	{"pattern", "a regular expression does not compile"},
	{"syntax", "an expression or template has a syntax error"},
	{"template-in-string", "a template in a string of an expression stays as text"},
	{"too-large", "an expression, statement or playbook is too large"},
	{"unknown-function", "an expression calls a function, filter or test that does not exist"},
	{"unsupported", "an expression uses a form of Jinja or expr that is not supported"},
}

// statementCodes are the codes of package statement.
var statementCodes = []CodeDoc{
	{"own-placeholder", "a statement has both templates and placeholders, such as $1"},
	{"sql-replace-dropped", "a replace that doubles quotes is dropped, because values are bound (warning)"},
	{"sql-syntax", "a statement has a syntax error"},
	{"statement-not-one", "a statement field has no statement, or more than one"},
	{"template-not-a-value", "a template is used where SQL does not allow a value"},
}
