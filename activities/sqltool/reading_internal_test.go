package sqltool

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlainNumbers: the plain form of a number is that of JSON without an exponent, and without the zero that has a sign.
func TestPlainNumbers(t *testing.T) {
	t.Parallel()
	plain, zero := regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`), regexp.MustCompile(`^-[0.]+$`)
	texts := []string{""}
	for range 5 { // all texts of up to five of these
		for _, text := range texts {
			for _, next := range []string{"-", "0", "7", ".", "e"} {
				texts = append(texts, text+next)
			}
		}
		texts = unique(texts)
	}
	for _, text := range append(texts, strings.Repeat("9", 40), "+1", " 1", "1 ", "1\n", "１") {
		require.Equal(t, plain.MatchString(text) && !zero.MatchString(text), isPlainNumber(text), text)
	}
}

// TestAmbiguousDates: a date is ambiguous as its form says, with and without the short way for those that begin with a year.
func TestAmbiguousDates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"2026-01-02": false, "2026-01-02T03:04:05Z": false, "2026-1-2": false, "20260102": false, "202601": true, "2026": false, "": false,
		"01-02-2026": true, "13-02-2026": false, "01/02/26": true, " 2026-01-02": false, "(01-02-2026": true, "1234-": false, "12345-01-02": false,
		"２０２６-01-02": false, "-2026-01-02": false,
	} {
		require.Equal(t, want, isAmbiguousDate(text), text)
	}
	digits := []string{"1", "2026", "12", "-", "/", " "}
	texts := []string{""}
	for range 6 {
		for _, text := range texts {
			for _, next := range digits {
				texts = append(texts, text+next)
			}
		}
		texts = unique(texts)
	}
	for _, text := range texts {
		if dateInFigures.FindStringSubmatch(text) == nil {
			require.False(t, isAmbiguousDate(text), text)
		} else if len(text) > 4 && text[4] == '-' {
			require.False(t, isDigits(text[:4]), text)
		}
	}
}

func unique(texts []string) (all []string) {
	seen := map[string]bool{}
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			all = append(all, text)
		}
	}
	return all
}

// TestColumnsThatChange: a column is converted if one of its values is, wherever the row is, and others stay as they are.
func TestColumnsThatChange(t *testing.T) {
	t.Parallel()
	w := &TableWrite{}
	for range 3 {
		w.Rows = append(w.Rows, map[string]any{"number": "1.50", "flag": "yes", "day": "2026-01-02", "text": "x", "short": "1.5"})
	}
	w.Rows[2]["number"], w.Rows[2]["day"], w.Rows[2]["short"] = "1,5", "2026-01-02T03:04:05Z", "1.55"
	fits := []columnFit{
		{column: Column{Name: "number"}, reads: ReaderOfType("numeric")},
		{column: Column{Name: "flag"}, reads: ReaderOfType("boolean")},
		{column: Column{Name: "day"}, reads: ReaderOfType("date")},
		{column: Column{Name: "text"}, reads: ReaderOfType("text")},
		{column: Column{Name: "short"}, reads: ReaderOfType("numeric(5,1)")},
		{column: Column{Name: "none"}, reads: ReaderOfType("bigint")},
	}
	findChanges(w.Rows, fits)
	for i, want := range []bool{true, true, true, false, true, false} {
		require.Equal(t, want, fits[i].changes, fits[i].column.Name)
	}
	w.Rows = w.Rows[:2]
	for i := range fits {
		fits[i].changes = false
	}
	findChanges(w.Rows, fits)
	for i, want := range []bool{false, true, false, false, false, false} {
		require.Equal(t, want, fits[i].changes, fits[i].column.Name)
	}
}
