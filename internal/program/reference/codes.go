package reference

import (
	_ "embed"
	"strings"
)

//go:embed codes.txt
var codesText string

// explanation is what codes.txt says of a diagnostic.
type explanation struct{ why, wrong, right string }

var explanations = readExplanations(codesText)

func readExplanations(text string) map[string]explanation {
	all := map[string]explanation{}
	for _, section := range strings.Split(text, "\n# ")[1:] {
		code, body, _ := strings.Cut(section, "\n")
		why, examples, _ := strings.Cut(body, "\n-- wrong\n")
		wrong, right, _ := strings.Cut(examples, "\n-- right\n")
		all[code] = explanation{why: strings.TrimSpace(why), wrong: strings.TrimRight(wrong, "\n"), right: strings.TrimRight(right, "\n")}
	}
	return all
}
