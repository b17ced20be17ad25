package expression

import (
	"maps"
	"slices"
)

// predicateKind says whether a function takes an expression that is evaluated
// once per element.
type predicateKind int

const (
	noPredicate    predicateKind = iota
	mayPredicate                 // sum(xs) and sum(xs, .price): call is used without one
	needsPredicate               // filter(xs, # > 1): call is nil, the compiler builds the loop
)

// function is one callable of the language. The table is read only.
type function struct {
	name      string
	min, max  int    // arguments, the predicate included; max -1 is any number
	signature string // for docs and messages about the number of arguments
	doc       string // one sentence
	predicate predicateKind

	// call gets canonical values, at least min and at most max of them, and
	// returns a canonical one. It charges b before the work.
	call func(b *Budget, args []any) (any, error)

	// written are checks of arguments that the author wrote as text, by their place;
	// what they refuse is a problem before there is a run.
	written map[int]func(text string) error
}

// FunctionDoc describes a function for the language's documentation.
type FunctionDoc struct {
	Name      string
	Signature string
	Doc       string
}

// functions holds every callable by its canonical name.
var functions = table(predicateFunctions, valueFunctions, textFunctions, listFunctions, mapFunctions,
	numberFunctions, timeFunctions, calendarFunctions, jsonFunctions)

func table(groups ...[]function) map[string]*function {
	all := map[string]*function{}
	for _, group := range groups {
		for i := range group {
			all[group[i].name] = &group[i]
		}
	}
	return all
}

// functionNames returns the names of all functions, sorted.
func functionNames() []string {
	return slices.Sorted(maps.Keys(functions))
}

// IsFunction reports whether the language has a function of the name.
func IsFunction(name string) bool {
	_, found := functions[name]
	return found
}

// Functions returns what the language's documentation says about each
// function, sorted by name.
func Functions() []FunctionDoc {
	docs := make([]FunctionDoc, 0, len(functions))
	for _, name := range functionNames() {
		f := functions[name]
		docs = append(docs, FunctionDoc{Name: f.name, Signature: f.signature, Doc: f.doc})
	}
	return docs
}
