package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/docs"
)

// Bounds of the pages that people write.
const (
	mostWords       = 2600 // of a page, its examples included
	mostPerSentence = 16   // in the mean
	mostInOne       = 45
	mostLines       = 130 // of README.md
)

// oblique begins sentences whose subject is hidden behind a relative clause.
var oblique = regexp.MustCompile(`^(?:Who|What|That|Whoever|Whatever)\b.*[^?]$`)

// ownPages are the texts of the pages that people write, by page.
func ownPages(t *testing.T) map[string]string {
	t.Helper()
	pages, err := docs.WrittenPages(root)
	require.NoError(t, err)
	all := map[string]string{}
	for _, page := range pages {
		all[page] = read(t, page)
	}
	return all
}

// TestPagesAreShort: nobody reads a library to run a playbook.
func TestPagesAreShort(t *testing.T) {
	t.Parallel()
	for page, text := range ownPages(t) {
		if n := len(strings.Fields(text)); n > mostWords {
			t.Errorf("%s has %d words, and a page at most %d: give a part of it a page of its own, or leave out what docs/reference has", page, n, mostWords)
		}
	}
	require.LessOrEqual(t, strings.Count(read(t, "README.md"), "\n"), mostLines)
}

// TestEnglish: sentences are short and begin with their subject. Which words people read is checked by
// TestWordsPeopleRead in internal/test/repo.
func TestEnglish(t *testing.T) {
	t.Parallel()
	sentences, words := 0, 0
	for page, text := range ownPages(t) {
		ofPage := 0
		before := sentences
		for _, paragraph := range proseOf(text) {
			for _, sentence := range sentencesOf(paragraph) {
				n := len(strings.Fields(sentence))
				sentences, ofPage = sentences+1, ofPage+n
				if n > mostInOne {
					t.Errorf("%s: a sentence of %d words: %s", page, n, sentence)
				}
				if oblique.MatchString(sentence) {
					t.Errorf("%s: begin with the subject: %s", page, sentence)
				}
			}
		}
		words += ofPage
		t.Logf("%4.1f words a sentence in %s", float64(ofPage)/float64(max(1, sentences-before)), page)
	}
	mean := float64(words) / float64(sentences)
	t.Logf("%.1f words a sentence", mean)
	require.LessOrEqual(t, mean, float64(mostPerSentence))
}

// TestSentences: the text that is checked is what people read.
func TestSentences(t *testing.T) {
	t.Parallel()
	page := "# Title\n\nOne `a b` [link](x.md).\nTwo goes\non.\n\n- three\n- four. Five?\n\n| a |\n|---|\n\n```sh\nsix.\n```\n"
	var all []string
	for _, paragraph := range proseOf(page) {
		all = append(all, sentencesOf(paragraph)...)
	}
	require.Equal(t, []string{"One code link.", "Two goes on.", "three", "four.", "Five?"}, all)
	require.True(t, oblique.MatchString("What waits is a timer."))
	require.False(t, oblique.MatchString("What is a run?"))
}

var (
	fenced     = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeInLine = regexp.MustCompile("`[^`\n]+`")
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	listMark   = regexp.MustCompile(`^(?:[-*]|\d+\.) `)
	sentenceAt = regexp.MustCompile(`[.!?]["*)_]*(?:\s+|$)`)
)

// proseOf are the paragraphs and entries of lists of a page: no code, tables or headings. Code within
// a line is one word.
func proseOf(markdown string) []string {
	text := fenced.ReplaceAllString(markdown, "\n")
	text = linkTarget.ReplaceAllString(codeInLine.ReplaceAllString(text, "code"), "]")
	text = strings.NewReplacer("[", "", "]", "", "**", "").Replace(text)
	var all []string
	begins := true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "<") || strings.HasPrefix(line, "!"):
			begins = true
		case begins || listMark.MatchString(line):
			all = append(all, listMark.ReplaceAllString(line, ""))
			begins = false
		default:
			all[len(all)-1] += " " + line
		}
	}
	return all
}

// sentencesOf are those of a paragraph.
func sentencesOf(paragraph string) []string {
	var all []string
	for {
		end := sentenceAt.FindStringIndex(paragraph)
		if end == nil {
			break
		}
		all = append(all, strings.TrimSpace(paragraph[:end[1]]))
		paragraph = paragraph[end[1]:]
	}
	all = append(all, strings.TrimSpace(paragraph))
	return slices.DeleteFunc(all, func(sentence string) bool { return sentence == "" })
}
