package playbook_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

const head = "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: example}\n"

// TestFileTooLarge has no golden pair because its input is 2 MiB.
func TestFileTooLarge(t *testing.T) {
	t.Parallel()
	text := head + "workflow:\n  - step: start\n# " + strings.Repeat("x", 2<<20)
	file := source.NewFile("large.yaml", []byte(text))
	pb, found := check.Validate(file, testTools, check.Options{})
	require.Nil(t, pb)
	require.Len(t, found, 1)
	require.Contains(t, found.Error(), "large.yaml:1:1: the file has 2097")
	require.Contains(t, found.Error(), "a playbook may have 1048576 (1 MiB) [too-large]")
}

// TestStatementTooLong: the validation bounds the statement of a step.
func TestStatementTooLong(t *testing.T) {
	t.Parallel()
	for size, refused := range map[int]bool{64 << 10: false, 64<<10 + 1: true} {
		text := head + "workflow:\n  - step: a\n    tool: sqlite\n    path: a.db\n    statement: SELECT '" + strings.Repeat("x", size-len("SELECT ''")) + "'\n"
		_, found := check.Validate(source.NewFile("long.yaml", []byte(text)), testTools, check.Options{})
		require.Equal(t, refused, strings.Contains(found.Error(), "8:16: the statement has 65537 bytes, 65536 are allowed"), "%d: %s", size, found.Error())
	}
}

func TestTooManySteps(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString(head + "workflow:\n")
	for range 501 {
		text.WriteString("  - {step: start, next: start}\n")
	}
	file := source.NewFile("steps.yaml", []byte(text.String()))
	_, found := check.Validate(file, testTools, check.Options{})
	require.Contains(t, found.Error(), "[too-many-steps]")
}

func TestTooDeep(t *testing.T) {
	t.Parallel()
	text := head + "workload: {a: " + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}\nworkflow:\n  - step: start\n"
	file := source.NewFile("deep.yaml", []byte(text))
	_, found := check.Validate(file, testTools, check.Options{})
	require.Contains(t, found.Error(), "[too-deep]")
}

// TestOverlay checks that keys which only --set and --workload supply are names.
func TestOverlay(t *testing.T) {
	t.Parallel()
	file := source.NewFile("overlay.yaml", []byte(head+`workload: {db: oracle}
workflow:
  - step: start
    tool: "{{ db }}"
    path: data.db
    statement: SELECT {{ region }}
`))
	_, found := check.Validate(file, testTools, check.Options{})
	require.Contains(t, found.Error(), `there is no tool "oracle"`)

	_, found = check.Validate(file, testTools, check.Options{Workload: map[string]any{"db": "sqlite"}})
	require.Len(t, found, 1)
	require.Contains(t, found.Error(), `unknown name "region"`)

	_, found = check.Validate(file, testTools, check.Options{Workload: map[string]any{"db": "sqlite", "region": "eu"}})
	require.Empty(t, found)
}

func TestCodesAreDocumented(t *testing.T) {
	t.Parallel()
	var codes []string
	for _, doc := range check.DiagnosticCodes() {
		require.Regexp(t, `^[a-z]+(-[a-z]+)*$`, doc.Code)
		require.NotEmpty(t, doc.Meaning, doc.Code)
		codes = append(codes, doc.Code)
	}
	require.True(t, slices.IsSorted(codes))
	require.Equal(t, slices.Compact(slices.Clone(codes)), codes)

	code := regexp.MustCompile(`(?m)^[a-z_]+\.yaml:\d+:\d+: .* \[([a-z-]+)\]$`)
	outs, err := filepath.Glob("testdata/*/*.out")
	require.NoError(t, err)
	require.NotEmpty(t, outs)
	for _, out := range outs {
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		for _, match := range code.FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, codes, match[1], out)
		}
	}
}

// TestEveryCodeHasAnExample checks that each check's code occurs in a golden
// pair, so that no message goes unread.
func TestEveryCodeHasAnExample(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	outs, err := filepath.Glob("testdata/*/*.out")
	require.NoError(t, err)
	migrated, err := filepath.Glob("../migrate/testdata/*.out")
	require.NoError(t, err)
	outs = append(append(outs, migrated...), "../../internal/program/reference/testdata/messages.txt")
	for _, out := range outs {
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		all.Write(text)
	}
	// Tested above, as their input is large; and in package activities.
	generated := []string{playbook.CodeTooLarge, playbook.CodeTooManySteps, playbook.CodeTooDeep, check.CodeCodeSyntax}
	var missing []string
	for _, doc := range check.DiagnosticCodes() {
		if !slices.Contains(generated, doc.Code) && !strings.Contains(all.String(), "["+doc.Code+"]") {
			missing = append(missing, doc.Code)
		}
	}
	require.Empty(t, missing, "these codes are in no golden file: codes.txt of internal/program/reference needs an example of each")
}
