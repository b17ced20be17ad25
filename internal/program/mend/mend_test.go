package mend_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/program/mend"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

func checked(file *source.File) source.Diagnostics {
	limits, _ := activities.LimitsFromEnv(func(string) (string, bool) { return "", false })
	_, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{Limits: limits})
	return found
}

const wrong = `# of the shop
apiVersion: reprise/v1
kind: Playbook
metadata: {name: users}
workload: {api: "http://x", limit: 10, label: "𝄞"} # inputs
workflow:
  - step: fetch
    description: "of 𝄞"   # why
    tool: htpp
    urk:   "{{ api }}/{{ lable }}/{{ uper(label) }}"
    method: GTE
    retry:
      - wehn: "{{ eror.status == '503' or error.stauts in ['502', \"504\"] }}"
        then: {max_attempt: 3, 'delay': 1s}
    next: lod
  - step: load
    vars: {n: "{{ fetch.id }}", m: "{{ vars.nn }}", k: "{{ steps.fetsh.data }}"}
    sink: {tool: file, path: x}
`

const right = `# of the shop
apiVersion: reprise/v1
kind: Playbook
metadata: {name: users}
workload: {api: "http://x", limit: 10, label: "𝄞"} # inputs
workflow:
  - step: fetch
    desc: "of 𝄞"   # why
    tool: http
    url:   "{{ api }}/{{ label }}/{{ upper(label) }}"
    method: GTE
    retry:
      - when: "{{ error.status == 503 or error.status in [502, 504] }}"
        then: {max_attempts: 3, 'delay': 1s}
    next: load
  - step: load
    vars: {n: "{{ fetch.id }}", m: "{{ vars.nn }}", k: "{{ steps.fetch.data }}"}
    sink: {tool: file, path: x}
`

// TestMend: what is sure is rewritten, and nothing else: GTE is no word for sure, and nn may be any name.
func TestMend(t *testing.T) {
	t.Parallel()
	result := mend.MendFile(source.NewFile("users.yaml", []byte(wrong)), checked)
	require.Equal(t, right, string(result.Text))
	require.GreaterOrEqual(t, len(result.Changes), 11)
	again := mend.MendFile(source.NewFile("users.yaml", result.Text), checked)
	require.Empty(t, again.Changes)
	require.Equal(t, right, string(again.Text))
}

// TestMendOlder: older forms are rewritten first, and what they hold after.
func TestMendOlder(t *testing.T) {
	t.Parallel()
	result := mend.MendFile(source.NewFile("users.yaml", []byte(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: users}
timeout: 1h
workflow:
  - step: fetch
    tool: http
    url: "http://x" # here
    retry: {max_attempts: 3, retry_when: "{{ status_code >= 500 }}"}
    next: fetsh
`)), checked)
	require.Contains(t, string(result.Text), "- when:")
	require.Contains(t, string(result.Text), "next: fetch\n")
	require.Contains(t, string(result.Text), "# here")
	require.Empty(t, checked(source.NewFile("users.yaml", result.Text)))
}

// TestMendNothing: what is right, or cannot be read, stays as it is.
func TestMendNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{right[:strings.Index(right, "workflow")], "a: [", "", "\t", "apiVersion: reprise/v1\r\nkind: Playbook\r\n"} {
		result := mend.MendFile(source.NewFile("users.yaml", []byte(text)), checked)
		require.Equal(t, text, string(result.Text))
		require.Empty(t, result.Changes)
	}
}

// FuzzMend: whatever is mended is mended as a whole, and nothing that could be read cannot any more.
func FuzzMend(f *testing.F) {
	f.Add(wrong)
	f.Add(right)
	f.Fuzz(func(t *testing.T, text string) {
		result := mend.MendFile(source.NewFile("users.yaml", []byte(text)), checked)
		again := mend.MendFile(source.NewFile("users.yaml", result.Text), checked)
		require.Empty(t, again.Changes)
		if len(result.Changes) == 0 {
			require.Equal(t, text, string(result.Text))
			return
		}
		_, err := yamltree.Parse(result.Text)
		require.NoError(t, err)
	})
}
