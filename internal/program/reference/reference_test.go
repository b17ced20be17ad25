package reference_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/program/reference"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// written is an example as a playbook: what it leaves out is as usual.
func written(example string) string {
	if strings.HasPrefix(example, "- ") {
		example = "workflow:\n" + example
	}
	text := ""
	for _, usual := range []string{
		"apiVersion: reprise/v1", "kind: Playbook", "metadata: {name: example}",
		"workload: {api: \"http://127.0.0.1:1\", ids: [1, 2], day: \"2026-01-31\", region: north}", "workflow: [{step: begin, vars: {a: 1}}]",
	} {
		key, _, _ := strings.Cut(usual, ":")
		if !strings.Contains("\n"+example, "\n"+key+":") {
			text += usual + "\n"
		}
	}
	return text + example + "\n"
}

// codesOf are the codes of what is found in a playbook.
func codesOf(text string) []string {
	limits, _ := activities.LimitsFromEnv(func(string) (string, bool) { return "", false })
	_, found := playbook.Validate(source.NewFile("example.yaml", []byte(text)), activities.Default(), playbook.CheckOptions{Limits: limits})
	var codes []string
	for _, one := range found {
		codes = append(codes, one.Code)
	}
	return codes
}

// TestCodesAreExplained: each has a reason, an example that has it, and one that has it no longer.
func TestCodesAreExplained(t *testing.T) {
	t.Parallel()
	r := reference.New(activities.Default())
	explained := 0
	for _, code := range playbook.Codes() {
		entry, found := r.Of(reference.OfCode, code.Code)
		require.True(t, found, code.Code)
		require.NotEqual(t, strings.TrimSuffix(entry.Doc, " "), entry.Doc+" ", code.Code)
		if entry.Wrong == "" {
			continue
		}
		explained++
		assert.Contains(t, codesOf(written(entry.Wrong)), code.Code, "the wrong example of %s", code.Code)
		assert.Empty(t, codesOf(written(entry.Right)), "the right example of %s", code.Code)
	}
	require.GreaterOrEqual(t, explained, len(playbook.Codes())*9/10)
}

// TestEverythingHasAnEntry: keys, tools, fields and functions are found by what people type.
func TestEverythingHasAnEntry(t *testing.T) {
	t.Parallel()
	r := reference.New(activities.Default())
	for question, want := range map[string]string{
		"retry.then.max_wait": "max_wait", "max_wait": "max_wait", "then.max_wait": "max_wait", "http": "http", "http.url": "http.url", "len": "len", "len()": "len",
		"loop.in": "collection", "unknown-name": "unknown-name", "partial_success": "partial_success", "4": "4", "exit 4": "4", "response": "response",
	} {
		found := r.Find(question)
		require.NotEmpty(t, found, question)
		require.True(t, slices.ContainsFunc(found, func(e reference.Entry) bool { return strings.HasSuffix(e.Name, want) }), question)
	}
	for _, entry := range r.Entries() {
		require.NotEmpty(t, entry.Doc, entry.Name)
		require.NotEmpty(t, r.Find(entry.Name), entry.Name)
		require.NotEmpty(t, entry.Markdown(), entry.Name)
		file, _, _ := strings.Cut(entry.Link, "#")
		_, err := os.Stat(filepath.Join("..", "..", "..", file))
		require.NoError(t, err, entry.Name)
	}
	require.Empty(t, r.Find("nothing.of.this"))
	require.Equal(t, "retry.then.max_wait", r.Suggest("retry.then.max_wiat"))
	require.Equal(t, "http", r.Suggest("htpp"))
}
