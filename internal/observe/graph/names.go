package graph

import (
	"fmt"
	"regexp"
	"strings"

	"reprise/internal/observe/render"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// names are the values that names in a picture are made of: those of the workload, without secrets.
type names struct{ workload map[string]any }

func namesOf(book *playbook.Playbook, below *Children) names {
	values := any(book.Workload)
	if below != nil && below.Workload != nil {
		values = expression.Merge(book.Workload, below.Workload)
	}
	workload, _ := render.Masked(values).(map[string]any)
	return names{workload}
}

var (
	template = regexp.MustCompile(`\{\{\s*(.*?)\s*\}\}`)
	// ofWorkload is an expression that is a key of the workload.
	ofWorkload = regexp.MustCompile(`^(?:workload\.)?([A-Za-z_][A-Za-z0-9_]*)$`)
)

// fillText puts the values of the workload into a text. Of other expressions it shows what they are, without braces.
func (n names) fillText(text string) string {
	return template.ReplaceAllStringFunc(text, func(found string) string {
		inner := template.FindStringSubmatch(found)[1]
		if key := ofWorkload.FindStringSubmatch(inner); key != nil {
			switch value := n.workload[key[1]].(type) {
			case nil, map[string]any, []any:
			case string:
				if !strings.Contains(value, "{{") {
					return value
				}
			default:
				return fmt.Sprint(value)
			}
		}
		return "‹" + inner + "›"
	})
}
