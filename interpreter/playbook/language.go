package playbook

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// This file exposes the tables that drive decoding. The documentation, the JSON Schema, starter explain and the
// editor are generated from it.

// Section describes a map of the language.
type Section struct {
	Name string
	// Open says that the section accepts the fields of its tool besides Keys.
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
	// Accepted are the values of a choice, or words allowed in place of the kind.
	Accepted []string
	// Least and Most are bounds of a number, nil for none.
	Least, Most *float64
	// Default is the value of an omitted key, as an author would write it; "" for none, or if it varies.
	Default string
	// Of is the name of the value's section, "" for none.
	Of       string
	Required bool
	Nullable bool // without a value it counts as omitted
	// StepsOnly says that the key is not allowed in the retry of sinks and notices.
	StepsOnly bool
}

// Sections returns all sections of the language with their keys, in the order of the documentation.
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
		Least: k.domain.least, Most: k.domain.most, Default: writtenDefault(k.domain.absent), Required: k.required != "", Nullable: k.nullable, StepsOnly: k.stepsOnly,
	}
	if k.domain.of != nil {
		described.Of = k.domain.of().name
	}
	return described
}

// writtenDefault returns a default as an author would write it.
func writtenDefault(absent any) string {
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

// CallbackWord is available only in requests of tools that await an answer: it says where the answer must be sent.
// Elsewhere the name is free.
const CallbackWord = "callback"

// RowWord is the current row, in expressions that are evaluated for each row.
const RowWord = "row"

// CallbackMembers are the members of CallbackWord.
var CallbackMembers = []string{"url", "token", "complete", "fail", "progress", "page"}

// RequestFields are fields whose values are requests, as http sends them.
var RequestFields = []string{"on_start", "on_cancel"}

// NoticeNames are names that only notices of the run have. There they hide equal names; elsewhere the names are
// free.
var NoticeNames = []string{"event", "status"}

// NamePattern matches valid names of steps, elements and into.
var NamePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
