package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/program/playtest"
	"reprise/internal/program/reference"
	"reprise/internal/test/docs"
)

// TestLLMs: what llms.txt links is there, and llms-full.txt has every word.
func TestLLMs(t *testing.T) {
	t.Parallel()
	links := regexp.MustCompile(`\]\(([^)]+)\): .`).FindAllStringSubmatch(read(t, "llms.txt"), -1)
	require.Greater(t, len(links), 20)
	for _, link := range links {
		if link[1] != "llms-full.txt" { // the site makes it
			require.FileExists(t, filepath.Join(root, link[1]))
		}
	}
	all := reference.New(activities.DefaultCatalogue())
	full := all.LLMsFull()
	for _, entry := range all.Entries() {
		require.True(t, strings.Contains(full, entry.Doc), "llms-full.txt has not what %s is for", entry.Name)
	}
}

// TestGuideOfLLMs: the playbook that models are shown first is valid, and its test passes.
func TestGuideOfLLMs(t *testing.T) {
	t.Parallel()
	examples := docs.FencedBlocks("llms-full.txt", reference.New(activities.DefaultCatalogue()).LLMsFull())
	require.GreaterOrEqual(t, len(examples), 2)
	dir := t.TempDir()
	for i, name := range []string{"users.yaml", "users_test.yaml"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(examples[i].Text), 0o600))
	}
	suite, err := playtest.Load(filepath.Join(dir, "users_test.yaml"))
	require.NoError(t, err)
	for _, test := range suite.Tests.Tests {
		for _, failure := range suite.Run(test, playtest.Options{}).Failures {
			t.Error(failure.Text("users_test.yaml"))
		}
	}
}
