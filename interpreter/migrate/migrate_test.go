package migrate_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/migrate"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

var update = flag.Bool("update", false, "rewrite the expected texts in testdata")

// inputs are the YAML files of folders.
func inputs(t testing.TB, dirs ...string) []string {
	t.Helper()
	var all []string
	for _, dir := range dirs {
		paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, paths, dir)
		all = append(all, slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "_test.yaml") })...)
	}
	return all
}

// TestFile compares what becomes of files, letter by letter: the report as
// comments, then the text.
func TestFile(t *testing.T) {
	t.Parallel()

	for _, path := range inputs(t, "testdata") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			t.Parallel()

			data, err := os.ReadFile(path)
			require.NoError(t, err)

			m := migrated(t, filepath.Base(path), data)
			got := report(m) + string(m.Text)
			out := strings.TrimSuffix(path, ".yaml") + ".out"

			if *update {
				require.NoError(t, os.WriteFile(out, []byte(got), 0o644))
			}

			want, err := os.ReadFile(out)
			require.NoError(t, err, "write it with -update")
			require.Equal(t, string(want), got)
		})
	}
}

func report(m *migrate.Migration) string {
	var b strings.Builder
	for _, change := range m.Changes {
		b.WriteString("#> " + change.Pos.String() + ": " + change.What + "\n")
	}

	for _, problem := range m.Problems {
		b.WriteString("#! " + problem.String() + "\n")
	}
	return b.String()
}

// migrated migrates and checks what holds for every file: nothing is left to do
// a second time, and where there was nothing to do the text is the same.
func migrated(t *testing.T, name string, data []byte) *migrate.Migration {
	t.Helper()

	m := migrate.MigrateFile(source.NewFile(name, data))
	if !m.HasChanged() {
		require.Equal(t, string(data), string(m.Text))
	}

	again := migrate.MigrateFile(source.NewFile(name, m.Text))
	require.Empty(t, again.Changes)
	require.Equal(t, string(m.Text), string(again.Text))
	require.Len(t, again.Problems, len(m.Problems))

	before, _ := playbook.Decode(source.NewFile(name, data))
	after, found := playbook.Decode(source.NewFile(name, m.Text))

	if len(m.Problems) == 0 {
		require.Empty(t, found)
	}

	if before != nil {
		require.Equal(t, policies(before), policies(after))
	}
	return m
}

// renamed are the names that data of older playbooks has where migrate finds it.
var renamed = regexp.MustCompile(`\b(result|response)\b`)

// policies are the policies of all steps in words, without their places.
func policies(book *playbook.Playbook) []string {
	var all []string

	for _, step := range book.Steps {
		for _, policy := range step.Retry {
			all = append(all, renamed.ReplaceAllString(describe(policy), "data"))
		}
	}
	return all
}

// TestWarnings migrates every older form of the warnings, in both kinds
// of line breaks and with a byte order mark.
func TestWarnings(t *testing.T) {
	t.Parallel()

	data, err := os.ReadFile("../playbook/testdata/warn/legacy_retry.yaml")
	require.NoError(t, err)

	m := migrated(t, "lf.yaml", data)
	require.Len(t, m.Changes, 15)
	require.Empty(t, m.Problems)

	crlf := bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	m2 := migrated(t, "crlf.yaml", crlf)
	require.Empty(t, m2.Problems)
	require.Equal(t, string(bytes.ReplaceAll(m.Text, []byte("\n"), []byte("\r\n"))), string(m2.Text))

	m3 := migrated(t, "bom.yaml", append([]byte("\xef\xbb\xbf"), data...))
	require.Empty(t, m3.Problems)
	require.Equal(t, "\xef\xbb\xbf"+string(m.Text), string(m3.Text))

	m4 := migrated(t, "end.yaml", bytes.TrimSuffix(data, []byte("\n")))
	require.Empty(t, m4.Problems)
	require.Equal(t, strings.TrimSuffix(string(m.Text), "\n"), string(m4.Text))
}

// TestEverything migrates every file of the tests: whatever they hold,
// a second time changes nothing, and what has no older form stays letter by
// letter.
func TestEverything(t *testing.T) {
	t.Parallel()

	paths := inputs(t, "testdata", "../playbook/testdata/*", "../../playbooks")
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			t.Parallel()

			data, err := os.ReadFile(path)
			require.NoError(t, err)

			m := migrate.MigrateFile(source.NewFile(path, data))
			if !m.HasChanged() {
				require.Equal(t, string(data), string(m.Text))
			}

			again := migrate.MigrateFile(source.NewFile(path, m.Text))
			require.Empty(t, again.Changes)
			require.Equal(t, string(m.Text), string(again.Text))
		})
	}
}

// FuzzFile looks for files that migrate breaks: the result must still be
// read, with no more errors than before, and have nothing left to change.
func FuzzFile(f *testing.F) {
	for _, path := range inputs(f, "testdata", "../playbook/testdata/*") {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}

	f.Fuzz(func(t *testing.T, data []byte) {
		m := migrate.MigrateFile(source.NewFile("fuzz.yaml", data))
		if !m.HasChanged() {
			require.Equal(t, string(data), string(m.Text))
			return
		}

		before, found := playbook.Decode(source.NewFile("fuzz.yaml", data))
		after, left := playbook.Decode(source.NewFile("fuzz.yaml", m.Text))
		require.LessOrEqual(t, len(left.Errors()), len(found.Errors()), "%s\n%s", left.Error(), m.Text)
		require.Equal(t, policies(before), policies(after))

		again := migrate.MigrateFile(source.NewFile("fuzz.yaml", m.Text))
		require.Empty(t, again.Changes, "%s", m.Text)
	})
}

// TestAliases migrates older forms of retry that share what aliases repeat.
func TestAliases(t *testing.T) {
	t.Parallel()

	m := migrated(t, "alias.yaml", []byte(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: example}
workflow:
  - {step: a, tool: http, url: x, retry: &r {max_attempts: &n 4, retry_when: &w "{{ status_code == 503 }}"}, next: b}
  - {step: b, tool: http, url: x, retry: *r, next: c}
  - {step: c, tool: http, url: x, retry: {max_attempts: *n, when: *w}}
`))
	require.Len(t, m.Changes, 3)
	require.Empty(t, m.Problems)
}
