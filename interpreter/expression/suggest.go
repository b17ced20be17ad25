package expression

import (
	"slices"
	"strings"
)

// maxEdits is the largest edit distance between two similar names. Beyond it suggestions would be guesses.
const maxEdits = 3

// opposites are words that look similar and have opposite meanings.
var opposites = [][2]string{
	{"include", "exclude"},
	{"import", "export"},
	{"encode", "decode"},
	{"encrypt", "decrypt"},
	{"enable", "disable"},
	{"min", "max"},
	{"lower", "upper"},
	{"asc", "desc"},
	{"push", "pull"},
	{"gt", "lt"},
	{"ge", "le"},
	{"gte", "lte"},
}

// areOpposite reports whether two names differ only in a word and its opposite.
func areOpposite(name, other string) bool {
	return name != other && slices.ContainsFunc(opposites, func(pair [2]string) bool {
		return strings.ReplaceAll(name, pair[0], pair[1]) == other || strings.ReplaceAll(name, pair[1], pair[0]) == other
	})
}

// Suggest returns the known name most similar to name, for "did you mean", or "" if none is similar. At most two
// letters, and at most half of name, may be added, missing, changed or swapped. Among equally similar names the
// alphabetically first one is chosen. It never returns the opposite of name.
func Suggest(name string, known []string) string {
	if name == "" || len(name) > 100 {
		return ""
	}
	wanted := []rune(strings.ToLower(name))
	best, nearest := "", min(maxEdits, len(wanted)/2+1)
	for _, candidate := range slices.Sorted(slices.Values(known)) {
		other := []rune(strings.ToLower(candidate))
		if areOpposite(string(wanted), string(other)) {
			continue
		}
		if len(other)-len(wanted) >= maxEdits || len(wanted)-len(other) >= maxEdits || candidate == name {
			continue
		}
		if d := editDistance(wanted, other); d < nearest {
			best, nearest = candidate, d
		}
	}
	return best
}

// SuggestCertain returns the known name that name certainly means, or "". Only one letter may differ, or two in long
// names; no digit may differ, and no other known name may be as similar.
func SuggestCertain(name string, known []string) string {
	near := Suggest(name, known)
	if near == "" || strings.Map(onlyDigits, near) != strings.Map(onlyDigits, name) {
		return ""
	}
	const short, long = 3, 8
	wanted := []rune(strings.ToLower(name))
	distance := editDistance(wanted, []rune(strings.ToLower(near)))
	if len(wanted) < short || distance > 2 || distance == 2 && len(wanted) < long {
		return ""
	}
	for _, other := range known {
		if other != near && editDistance(wanted, []rune(strings.ToLower(other))) <= distance {
			return ""
		}
	}
	return near
}

func onlyDigits(r rune) rune {
	if '0' <= r && r <= '9' {
		return r
	}
	return -1
}

// editDistance counts insertions, deletions, substitutions and swaps of neighbouring letters (optimal string
// alignment distance: each letter is edited at most once).
func editDistance(a, b []rune) int {
	before := make([]int, len(b)+1)
	above := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i, x := range a {
		row[0] = i + 1
		for j, y := range b {
			cost := 1
			if x == y {
				cost = 0
			}
			row[j+1] = min(above[j+1]+1, row[j]+1, above[j]+cost)
			if i > 0 && j > 0 && x == b[j-1] && a[i-1] == y {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
