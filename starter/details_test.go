package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
)

func TestStaticDetailsNameKeysAndNoValues(t *testing.T) {
	t.Parallel()
	book := &playbook.Playbook{
		Name: "patients", Hash: strings.Repeat("0123456789abcdef", 4), Workload: map[string]any{"api": "http://secret.example", "limit": 3},
	}
	require.Equal(t, "Playbook `patients`, hash `0123456789ab`\n\nWorkload: `api`, `limit`, `token¦`\n\n\\!\\[x\\]\\(http\\://evil\\.example\\)\n",
		staticDetails(book, map[string]any{"token|": "hush", "limit": 4}, "![x](http://evil.example)"))
	require.Equal(t, "Playbook `none`, hash `0123456789ab`\n",
		staticDetails(&playbook.Playbook{Name: "none", Hash: book.Hash, Workload: map[string]any{}}, nil, ""))
}

// TestStaticDetailsAreBounded: Temporal refuses a run whose details are larger.
func TestStaticDetailsAreBounded(t *testing.T) {
	t.Parallel()
	const most = 20_000
	book := &playbook.Playbook{Name: "patients", Hash: strings.Repeat("0", 64), Workload: map[string]any{}}
	for i := range 1000 {
		book.Workload[fmt.Sprint(strings.Repeat("𝔎", 100), i)] = i
	}
	for _, text := range []string{"𝔎", "["} {
		details := staticDetails(book, nil, strings.Repeat(text, 10_000))
		require.Less(t, len(details), most)
		require.Contains(t, details, " and 970 more\n")
	}
}
