package expression_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

// TestLayoutOfStrftime: what package time would read in another way is refused.
func TestLayoutOfStrftime(t *testing.T) {
	t.Parallel()

	for form, layout := range map[string]string{
		"%d/%m/%Y":                "02/01/2006",
		"%Y-%m-%dT%H:%M:%S.%fZ":   "2006-01-02T15:04:05.000000Z",
		"%Y-%m-%dT%H:%M:%S.%_msZ": "2006-01-02T15:04:05.000Z",
		"%Y-%m-%dT%H:%M:%S%z":     "2006-01-02T15:04:05-0700",
		"%a, %d %b %Y %T GMT":     "Mon, 02 Jan 2006 15:04:05 GMT",
		"%-d.%-m.%y %I:%M %p":     "2.1.06 03:04 PM",
		"%F":                      "2006-01-02",
		"100%%":                   "",
		"%Y-%m-01":                "", // the 1st; package time reads the month
		"%S%f":                    "", // package time knows a fraction behind a point
		"%Q":                      "",
		"%":                       "",
		"%s":                      "",
		"%Y MST":                  "",
		"2006-01-02":              "",
	} {
		got, ok := expression.LayoutOfStrftime(form)
		require.Equal(t, layout != "", ok, form)

		if ok {
			require.Equal(t, layout, got, form)
		}
	}
}
