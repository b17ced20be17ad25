package graph

import (
	"fmt"
	"regexp"
	"strings"

	"reprise/internal/observe/render"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// names resolves names in a picture: it has the values of the workload, without secrets.
type names struct{ workload map[string]any }

func namesOf(book *playbook.Playbook, below *Children) names {
	values := any(book.Workload)
	if below != nil && below.Workload != nil {
		values = expression.MergeMaps(book.Workload, below.Workload)
	}
	workload, _ := render.MaskSecrets(values).(map[string]any)
	return names{workload}
}

var (
	template = regexp.MustCompile(`\{\{\s*(.*?)\s*\}\}`)
	// ofWorkload matches an expression that is only a key of the workload.
	ofWorkload = regexp.MustCompile(`^(?:workload\.)?([A-Za-z_][A-Za-z0-9_]*)$`)
)

// fillText replaces expressions in a text by values of the workload. Other expressions are shown without braces.
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
