package playbook

import (
	"cmp"
	"slices"

	"reprise/interpreter/lists"
)

// key is one word that a section of a playbook accepts.
type key struct {
	name    string
	aliases []string // other spellings, in every version
	older   []string // spellings of noetl.io/v1 only
	doc     string
	newer   bool   // no word of noetl.io/v1, whose playbooks may have a label of that name
	warned  string // the one of older that draws a warning
	// required shows how to write the word where it is missing; "" for words
	// that may be.
	required string
	nullable bool // without a value the word counts as left out
	repeats  bool // asks for another attempt; words of then only
	// StepsOnlyWords words of then are not for the retry of sinks and notices.
	stepsOnly bool
	// The rest is filled in by sectionOf.
	domain domain
	what   string // the word in messages
	read   func(d *decoder, w written, into any)
}

// keyOf is a word and how it is read into a T: a new word is a new entry of its
// section.
type keyOf[T any] struct {
	key
	into reader[T]
}

// acceptKey is a word of a section.
func acceptKey[T any](k key, into reader[T]) keyOf[T] { return keyOf[T]{k, into} }

// section is a map of a playbook with known keys. This one table serves
// decoding, the suggestions for misspelt keys, and docs/reference.
type section struct {
	name   string // as the documentation calls it
	called string // as messages call it, where that is not name
	prefix string // is before the words in messages about their values
	keys   []key
	open   bool // other keys are fields of the tool
	labels bool // other keys are labels in noetl.io/v1
	// fields renames fields of tools as noetl.io/v1 spells them.
	fields map[string]string
	// below is the section whose words are often written here by mistake.
	below *section
}

// sectionOf is a section with its words, which are read into a T.
func sectionOf[T any](s section, words []keyOf[T]) *section {
	for _, word := range words {
		k := word.key
		k.domain, k.what = word.into.domain, s.prefix+k.name
		if read := word.into.read; read != nil {
			k.read = func(d *decoder, w written, into any) { read(d, w, into.(*T)) }
		}
		s.keys = append(s.keys, k)
	}
	return &s
}

// sectionTitle is what messages call the section.
func (s *section) sectionTitle() string { return cmp.Or(s.called, s.name) }

// olderFields are the fields of tools that noetl.io/v1 spells otherwise.
var olderFields = map[string]string{
	"endpoint": "url",
	"payload":  "body",
	"command":  "statement",
	"query":    "statement",
}

// saveWord is what noetl.io/v1 calls a sink.
var saveWord = []string{"save"}

var sections = []*section{
	playbookSection, metadataSection, scheduleSection, triggerSection, concurrencySection, partitionsSection, workbookSection, stepSection, toolSection, loopSection, sourceSection, incrementalSection, deadLetterSection, budgetSection,
	thresholdsSection, rateLimitSection, policySection, thenSection, nextCallSection, collectSection, perIterationSection,
	sinkSection, noticeSection, notifySection, expectSection, routeSection, targetSection,
}

// sectionNamed is the section of that name.
func sectionNamed(name string) *section {
	return lists.First(sections, func(s *section) bool { return s.name == name })
}

// KeysOf are the keys that an author may write in the section of that name.
func KeysOf(section string) []string { return sectionNamed(section).keyNames() }

// findKey returns the key that a word stands for.
func (s *section) findKey(name string, older bool) (*key, bool) {
	for i := range s.keys {
		k := &s.keys[i]
		if k.name == name || slices.Contains(k.aliases, name) || older && slices.Contains(k.older, name) {
			return k, true
		}
	}
	return nil, false
}

// olderNames are the keys of a section in noetl.io/v1, without its own spellings.
func (s *section) olderNames() []string { return s.namesOf(func(k key) bool { return !k.newer }) }

// keyNames are the keys that an author may write.
func (s *section) keyNames() []string { return s.namesOf(func(key) bool { return true }) }

// namesOf are the names of the keys that match.
func (s *section) namesOf(match func(key) bool) []string {
	return lists.Map(lists.Filter(s.keys, match), func(k key) string { return k.name })
}
