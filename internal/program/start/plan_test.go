package start

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/connect"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

func TestDetailsNameKeysAndNoValues(t *testing.T) {
	t.Parallel()
	book := &playbook.Playbook{
		Name: "patients", Hash: strings.Repeat("0123456789abcdef", 4), Workload: map[string]any{"api": "http://secret.example", "limit": 3},
	}
	require.Equal(t, "Playbook `patients`, hash `0123456789ab`\n\nWorkload: `api`, `limit`, `token¦`\n\n\\!\\[x\\]\\(http\\://evil\\.example\\)\n",
		DetailsMarkdown(book, map[string]any{"token|": "hush", "limit": 4}, "![x](http://evil.example)"))
	require.Equal(t, "Playbook `none`, hash `0123456789ab`\n",
		DetailsMarkdown(&playbook.Playbook{Name: "none", Hash: book.Hash, Workload: map[string]any{}}, nil, ""))
}

// TestDetailsAreBounded: Temporal refuses a run whose details are larger.
func TestDetailsAreBounded(t *testing.T) {
	t.Parallel()
	const most = 20_000
	book := &playbook.Playbook{Name: "patients", Hash: strings.Repeat("0", 64), Workload: map[string]any{}}
	for i := range 1000 {
		book.Workload[fmt.Sprint(strings.Repeat("𝔎", 100), i)] = i
	}
	for _, text := range []string{"𝔎", "["} {
		details := DetailsMarkdown(book, nil, strings.Repeat(text, 10_000))
		require.Less(t, len(details), most)
		require.Contains(t, details, " and 970 more\n")
	}
}

// TestFairnessKeyFitsTemporal passes MaxFairnessKey.
func TestFairnessKeyFitsTemporal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 40) // 80 bytes
	for _, row := range []struct{ id, want string }{
		{"", ""},
		{"clinic-x7k2", "clinic-x7k2"},
		{strings.Repeat("a", 64), strings.Repeat("a", 64)},
		{strings.Repeat("a", 65), strings.Repeat("a", 47) + "~635361c48bb9eab1"},
		{long, strings.Repeat("ü", 23) + "~"},
	} {
		key := FairnessKey(row.id)
		require.True(t, strings.HasPrefix(key, row.want), "%q", key)
		require.LessOrEqual(t, len(key), 64, "%q", key)
		require.True(t, utf8.ValidString(key), "%q", key)
	}
	require.NotEqual(t, FairnessKey(long+"1"), FairnessKey(long+"2"), "long IDs with one beginning")
}

// TestAttributesThatWereAdded: a run sets an attribute that was just added where its start
// shows that the server takes it.
func TestAttributesThatWereAdded(t *testing.T) {
	t.Parallel()
	least := LeastAttributes()
	all := append(LeastAttributes(), protocol.DeadLettersAttribute, protocol.NextRetryAttribute)
	for _, c := range []struct {
		known connect.Attributes
		want  protocol.Input
	}{
		{connect.Attributes{Added: all}, protocol.Input{SearchAttributes: true, DeadLetters: true, NextRetry: true}},
		{connect.Attributes{Present: all}, protocol.Input{SearchAttributes: true, DeadLetters: true, NextRetry: true}},
		{connect.Attributes{Present: all[:4], Added: all[4:]}, protocol.Input{SearchAttributes: true, DeadLetters: true}},
		{connect.Attributes{Present: least[1:], Added: all[3:]}, protocol.Input{}},
	} {
		var p Plan
		p.useAttributes(c.known)
		require.Equal(t, c.want, p.Input)
	}
}
