package scaffold

import (
	"errors"
	"regexp"
	"strings"
)

// ofCmd matches a command line that was copied for the Windows shell cmd.
var ofCmd = regexp.MustCompile(`(?i)^(curl|curl\.exe)\s+\^"|\^\r?\n`)

// cmdWords returns the arguments of a curl command line for cmd.
func cmdWords(line string) ([]string, error) {
	words, open := windowsWords(withoutCarets(line))
	switch {
	case open:
		return nil, errors.New("a quote in the command is not closed")
	case len(words) == 0 || !isCurl(words[0]):
		return nil, errors.New("expected a curl command, such as: curl https://api.example.com/users")
	}
	return words[1:], nil
}

// withoutCarets undoes cmd's quoting: a caret outside of quotes makes the next character literal,
// and joins lines.
func withoutCarets(line string) string {
	line = strings.ReplaceAll(line, "\r\n", "\n")
	var out strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		if c == '^' && !quoted {
			if i++; i < len(line) && line[i] == '\n' { // the one behind it is plain
				i++
			}
			if i < len(line) {
				out.WriteByte(line[i])
			}
			continue
		}
		if c == '"' {
			quoted = !quoted
		}
		out.WriteByte(c)
	}
	return out.String()
}

// windowsWords splits a command line into arguments as Windows programs do: backslashes are special only before a
// quote. It reports whether a quote is left open.
func windowsWords(line string) (words []string, open bool) {
	var word strings.Builder
	begun, quoted := false, false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\':
			n := len(line[i:]) - len(strings.TrimLeft(line[i:], `\`))
			i += n - 1
			begun = true
			if i+1 >= len(line) || line[i+1] != '"' {
				word.WriteString(strings.Repeat(`\`, n))
				continue
			}
			word.WriteString(strings.Repeat(`\`, n/2))
			if n%2 == 1 {
				word.WriteByte('"')
				i++
			}
		case c == '"' && quoted && i+1 < len(line) && line[i+1] == '"':
			word.WriteByte('"')
			i++
		case c == '"':
			quoted, begun = !quoted, true
		case !quoted && strings.IndexByte(" \t\n", c) >= 0:
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words, quoted
}
