package playbook

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// The room of language.go: what the tables that decode a playbook say of the language. The
// documentation, the JSON Schema, starter explain and the editor are made of it.

// Section describes a map of the language.
type Section struct {
	Name string
	// Open sections accept the fields of their tool beside Keys.
	Open bool
	Keys []Key
}

// Key describes one key of a section.
type Key struct {
	Name    string
	Aliases []string // other spellings
	Older   []string // spellings of noetl.io/v1 only
	Doc     string
	Kind    WordKind
	// Accepted are the words of a choice, else words that may be in place of the kind.
	Accepted []string
	// Least and Most are bounds of a number, nil for none.
	Least, Most *float64
	// Default is the value if the key is omitted, as an author would write it; "" for none, or
	// if it varies.
	Default string
	// Of is the name of the section that is there, "" for none.
	Of       string
	Required bool
	Nullable bool // without a value it counts as left out
	// StepsOnly keys are not for the retry of sinks and notices.
	StepsOnly bool
}

// Sections are all sections of the language with the keys that they accept, in
// the order of the documentation.
func Sections() []Section { return describeSections(sections) }

func describeSections(sections []*section) []Section {
	all := make([]Section, len(sections))
	for i, s := range sections {
		all[i] = Section{Name: s.name, Open: s.open}
		for j := range s.keys {
			all[i].Keys = append(all[i].Keys, s.keys[j].describeKey())
		}
	}
	return all
}

func (k *key) describeKey() Key {
	described := Key{
		Name: k.name, Aliases: k.aliases, Older: k.older, Doc: k.doc, Kind: k.domain.kind, Accepted: k.domain.accepted,
		Least: k.domain.least, Most: k.domain.most, Default: asWritten(k.domain.absent), Required: k.required != "", Nullable: k.nullable, StepsOnly: k.stepsOnly,
	}
	if k.domain.of != nil {
		described.Of = k.domain.of().name
	}
	return described
}

// asWritten is a default as an author writes it.
func asWritten(absent any) string {
	if absent == nil {
		return ""
	}
	text := fmt.Sprint(absent)
	if _, isDuration := absent.(time.Duration); !isDuration {
		return text
	}
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// CallbackWord is a name that only requests of tools have which await an answer:
// where the answer is to be sent. Elsewhere the name is free.
const CallbackWord = "callback"

// RowWord is the row at hand where an expression is evaluated for each row.
const RowWord = "row"

// CallbackMembers are the members of CallbackWord.
var CallbackMembers = []string{"url", "token", "complete", "fail", "progress", "page"}

// RequestFields are fields that are requests of their own, as http sends them.
var RequestFields = []string{"on_start", "on_cancel"}

// NoticeNames are names that only notices of the run have. They hide what has the
// same name elsewhere, and are kept from nobody.
var NoticeNames = []string{"event", "status"}

// NamePattern is what names of steps, elements and into look like.
var NamePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
