package playbook

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// Codes of the problems that decoding reports. Each is an anchor of
// docs/language.md.
const (
	CodeAliasCycle         = "alias-cycle"
	CodeBadName            = "bad-name"
	CodeBadNumber          = "bad-number"
	CodeConflict           = "conflicting-keys"
	CodeDuplicateKey       = "duplicate-key"
	CodeEmpty              = "empty"
	CodeEncoding           = "encoding"
	CodeLegacyRetry        = "legacy-retry"
	CodeLegacyWord         = "legacy-word"
	CodeMergeKey           = "merge-key"
	CodeMissingKey         = "missing-key"
	CodeNotMigrated        = "not-migrated"
	CodeOtherLanguage      = "other-language"
	CodePath               = "path"
	CodeSeveralDocuments   = "several-documents"
	CodeTabIndentation     = "tab-indentation"
	CodeTemplateNotAllowed = "template-not-allowed"
	CodeTooDeep            = "too-deep"
	CodeTooLarge           = "too-large"
	CodeTooManyAliases     = "too-many-aliases"
	CodeTooManySteps       = "too-many-steps"
	CodeUnknownKey         = "unknown-key"
	CodeUnquotedTemplate   = "unquoted-template"
	CodeWrongType          = "wrong-type"
	CodeWrongValue         = "wrong-value"
	CodeYAMLSyntax         = "yaml-syntax"
	CodeYAMLTag            = "yaml-tag"
)

var decodeCodes = []CodeDoc{
	{CodeAliasCycle, "a YAML alias stands inside of what it repeats"},
	{CodeBadName, "a name is empty, too long, or has characters that names must not have"},
	{CodeBadNumber, "a number is infinite, no number, or too large"},
	{CodeConflict, "two keys of a map exclude each other"},
	{CodeDuplicateKey, "a key stands twice in a map, or beside another spelling of it"},
	{CodeEmpty, "the file, the workflow or an entry is empty"},
	{CodeEncoding, "the file is not UTF-8 text"},
	{CodeLegacyRetry, "retry has an older form; the list to write is shown (warning)"},
	{CodeLegacyWord, "a word has an older name (warning)"},
	{CodeMergeKey, "the YAML merge key << is not accepted"},
	{CodeMissingKey, "a key is missing"},
	{CodeNotMigrated, "starter migrate leaves something as it is, to be rewritten by hand"},
	{CodeOtherLanguage, "apiVersion names another language, of which nothing is checked"},
	{CodePath, "the path of collect cannot be read"},
	{CodeSeveralDocuments, "the file holds more than one YAML document"},
	{CodeTabIndentation, "a line is indented with tabs, which YAML does not allow"},
	{CodeTemplateNotAllowed, "a template stands where the value must be known before the run"},
	{CodeTooDeep, "maps and lists are nested too deeply"},
	{CodeTooLarge, "an expression, statement or playbook is beyond a limit of size"},
	{CodeTooManyAliases, "YAML aliases repeat too much"},
	{CodeTooManySteps, "the workflow has too many steps"},
	{CodeUnknownKey, "a section has no such key"},
	{CodeUnquotedTemplate, "a template without quotes, which YAML reads as a map"},
	{CodeWrongType, "a value is of the wrong type"},
	{CodeWrongValue, "a value is none of those accepted"},
	{CodeYAMLSyntax, "the file is not YAML"},
	{CodeYAMLTag, "a YAML tag or type that playbooks do not have"},
}

// decoder carries what the sections share. It lives for one file.
type decoder struct {
	file  *source.File
	older bool // noetl.io/v1
	found source.Diagnostics
	// broken are nodes with a problem already reported, so that nothing that
	// follows from it is.
	broken map[*yaml.Node]bool
	// unread are the texts below keys that no section has.
	unread []string
	// spelt are the words of an older form that values of the list come from.
	spelt map[*yaml.Node]string
	// origins are the conditions that were rewritten.
	origins map[*yaml.Node]*scalarOrigin
}

type scalarOrigin struct {
	origin *origin
	style  source.Style
}

func (d *decoder) errorf(pos source.Position, code, format string, args ...any) {
	d.add(source.Error, pos, code, fmt.Sprintf(format, args...))
}

func (d *decoder) warnf(pos source.Position, code, format string, args ...any) {
	d.add(source.Warning, pos, code, fmt.Sprintf(format, args...))
}

func (d *decoder) add(severity source.Severity, pos source.Position, code, message string) {
	d.found = append(d.found, source.Diagnostic{
		File: d.file.Name, Pos: pos, Code: code, Message: message, Severity: severity,
	})
}

// nearOr completes a message about a word that is not known: the word it
// resembles, else the words accepted.
func nearOr(name string, accepted []string) string {
	if near := expression.Suggest(name, accepted); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(accepted) == 1 {
		return fmt.Sprintf("; only %q is accepted", accepted[0])
	}
	return "; accepted are " + listed(accepted)
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
