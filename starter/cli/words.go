package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/user"
	"slices"
	"strings"

	"reprise/internal/base/terminal"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// DidYouMean returns the end of a message about an unknown name: the known name that is most similar, or "".
func DidYouMean(prefix, name string, known []string) string {
	if near := expression.Suggest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", prefix+near)
	}
	return ""
}

// AsTexts converts words to strings.
func AsTexts[W ~string](words []W) []string {
	return lists.Map(words, func(word W) string { return string(word) })
}

// KnownStep returns an error for a step that the playbook does not have.
func KnownStep(name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	if near := expression.Suggest(name, known); near != "" {
		return UsageError("the run has no step %q; did you mean %q?", name, near)
	}
	return UsageError("the run has no step %q; it has %s", name, terminal.Shorten(strings.Join(known, ", "), 400))
}

// OrList joins words with commas and "or".
func OrList[W ~string](words []W) string { return SentenceList(words, "or") }

// SentenceList joins words with commas, the last two with the word last.
func SentenceList[W ~string](words []W, last string) string {
	var b strings.Builder
	for i, word := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" " + last + " ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(word))
	}
	return b.String()
}

// CheckChoice returns a usage error for a word that is not among the known ones.
func CheckChoice[W ~string](flag string, word W, known []W) error {
	if slices.Contains(known, word) {
		return nil
	}
	return UsageError("%s %q is unknown%s", flag, word, ExpectedWords(string(word), AsTexts(known)))
}

// ExpectedWords returns the end of a message about an unknown word: the most similar known one, or all of them.
func ExpectedWords(word string, known []string) string {
	if near := expression.Suggest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ", expected one of " + strings.Join(known, ", ")
}

// SecondArg returns the second argument, or "" if there is none.
func SecondArg(args []string) string {
	if len(args) < 2 {
		return ""
	}
	return args[1]
}

// IsAre returns " is" for one thing, " are" for more.
func IsAre(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

// OrEmpty returns a list that is never nil, so that JSON has [] in place of null.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// SortedKeys returns the keys of a map, sorted.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Whoami returns the identity of the user as user@host, which Temporal's clients use too.
func Whoami() string {
	name, host := os.Getenv("USER"), "unknown"
	if current, err := user.Current(); err == nil {
		name = current.Username
	}
	if known, err := os.Hostname(); err == nil {
		host = known
	}
	return name + "@" + host
}

// OutcomeLine returns the line that describes the outcome of a command for a run. It is wrapped only at a terminal.
func OutcomeLine(to io.Writer, workflowID, said string) string {
	line := terminal.EscapeInvisible(workflowID) + ": " + terminal.Shorten(said, 2000) + "\n"
	if !terminal.IsTerminal(to) {
		return line
	}
	var b strings.Builder
	terminal.WriteWrapped(&b, line, terminal.PaperOf(to).Width)
	return b.String()
}

// YesCell returns a boolean for a table cell: "yes" or "".
func YesCell(is bool) string {
	if is {
		return "yes"
	}
	return ""
}
