package playbook

import (
	"cmp"
	"slices"

	"reprise/interpreter/lists"
)

// key is a word that a section of a playbook accepts.
type key struct {
	name    string
	aliases []string // other spellings, in every version
	older   []string // spellings of noetl.io/v1 only
	doc     string
	newer   bool   // not a word of noetl.io/v1, whose playbooks may have a label with that name
	warned  string // the spelling in older that causes a warning
	// required is an example for a missing word; "" for optional words.
	required string
	nullable bool // without a value the word counts as omitted
	repeats  bool // causes another attempt; for words of then only
	// stepsOnly words of then are not allowed in the retry of sinks and notices.
	stepsOnly bool
	// The following fields are set by sectionOf.
	domain domain
	what   string // name of the word in messages
	read   func(d *decoder, w written, into any)
}

// keyOf is a word with its reader into a T: a new word is a new entry of its section.
type keyOf[T any] struct {
	key
	into reader[T]
}

// acceptKey returns a word of a section.
func acceptKey[T any](k key, into reader[T]) keyOf[T] { return keyOf[T]{k, into} }

// section is a map in a playbook with known keys. The same table drives decoding, suggestions for misspelt keys,
// and docs/reference.
type section struct {
	name   string // name in the documentation
	called string // name in messages, if different
	prefix string // prefix of the words in messages about their values
	keys   []key
	open   bool // other keys are fields of the tool
	labels bool // other keys are labels in noetl.io/v1
	// fields maps noetl.io/v1's names of tools' fields to the current ones.
	fields map[string]string
	// below is the section whose words are often written here by mistake.
	below *section
}

// sectionOf returns a section with its words, which are read into a T.
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

// sectionTitle returns the name of the section for messages.
func (s *section) sectionTitle() string { return cmp.Or(s.called, s.name) }

// olderFields maps noetl.io/v1's names of tools' fields to the current ones.
var olderFields = map[string]string{
	"endpoint": "url",
	"payload":  "body",
	"command":  "statement",
	"query":    "statement",
}

// saveWord is noetl.io/v1's name of sink.
var saveWord = []string{"save"}

var sections = []*section{
	playbookSection, metadataSection, scheduleSection, triggerSection, concurrencySection, partitionsSection, workbookSection, stepSection, toolSection, loopSection, sourceSection, incrementalSection, deadLetterSection, budgetSection,
	thresholdsSection, rateLimitSection, policySection, thenSection, nextCallSection, collectSection, perIterationSection,
	sinkSection, noticeSection, notifySection, expectSection, routeSection, targetSection,
}

// sectionNamed returns the section with a name.
func sectionNamed(name string) *section {
	return lists.First(sections, func(s *section) bool { return s.name == name })
}

// KeysOf returns the keys that an author may write in the named section.
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

// olderNames returns the keys of a section that exist in noetl.io/v1, in their current spelling.
func (s *section) olderNames() []string { return s.matchingNames(func(k key) bool { return !k.newer }) }

// keyNames returns the keys that an author may write.
func (s *section) keyNames() []string { return s.matchingNames(func(key) bool { return true }) }

// matchingNames returns the names of the keys that match.
func (s *section) matchingNames(match func(key) bool) []string {
	return lists.Map(lists.Filter(s.keys, match), func(k key) string { return k.name })
}
