package playbook

// Word is an entry of a section's table.
type Word struct {
	Section, Name, Doc, Kind string
	Accepted                 []string
	Absent                   any
	Read                     bool
	Of                       string // the section that stands there, "" for none
}

// WordsOfSections are all words of the language.
func WordsOfSections() []Word {
	var all []Word
	for _, s := range sections {
		for _, k := range s.keys {
			word := Word{
				Section: s.name, Name: k.name, Doc: k.doc, Kind: string(k.domain.kind), Accepted: k.domain.accepted,
				Absent: k.domain.absent, Read: k.read != nil,
			}
			if k.domain.of != nil {
				word.Of = k.domain.of().name
			}
			all = append(all, word)
		}
	}
	return all
}

// What tests compare with.
var (
	CodeAliasCycle       = codeAliasCycle
	CodeSeveralDocuments = codeSeveralDocuments
	CodeTooDeep          = codeTooDeep
	CodeTooManySteps     = codeTooManySteps
	CodeUnquotedTemplate = codeUnquotedTemplate
	CodeYAMLTag          = codeYAMLTag
	MaxProblems          = maxProblems
)
