package playtest_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/playtest"
	"reprise/internal/test/docs"
	"reprise/internal/test/testenv"
)

var update = flag.Bool("update", false, "write the golden files")

// TestExamples runs the tests of the examples. Each example has some, which take all of its
// steps, policies and routes.
func TestExamples(t *testing.T) {
	t.Parallel()
	books, err := filepath.Glob("../../../playbooks/*.yaml")
	require.NoError(t, err)
	seen := 0
	for _, book := range books {
		if playtest.IsTests(book) {
			continue
		}
		seen++
		t.Run(filepath.Base(book), func(t *testing.T) {
			t.Parallel()
			suite := passes(t, playtest.PathOf(book))
			require.Equal(t, filepath.Base(book), suite.Tests.Playbook)
		})
	}
	require.Greater(t, seen, 14)
}

// passes runs the tests of a file, none of which may fail, or leave something out.
func passes(t *testing.T, path string) *playtest.Suite {
	t.Helper()
	suite, err := playtest.Load(path)
	require.NoError(t, err)
	reports := all(suite)
	for _, report := range reports {
		require.Empty(t, texts(report), report.Test.Name)
	}
	for _, part := range playtest.CoverageOf(suite, reports).MissedParts() {
		t.Errorf("%s:%s: no test takes %s", suite.Book.File.Name, part.Pos, part.What)
	}
	return suite
}

func all(suite *playtest.Suite) []*playtest.Report {
	var selected []playtest.SelectedTest
	for _, test := range suite.Tests.Tests {
		selected = append(selected, playtest.SelectedTest{Suite: suite, Test: test})
	}
	return playtest.RunAll(selected, playtest.Options{}, nil)
}

func texts(report *playtest.Report) []string {
	var all []string
	for _, failure := range report.Failures {
		all = append(all, failure.Text(filepath.Base(report.Suite.Path)))
	}
	return all
}

// TestPass runs tests of what else a playbook can do.
func TestPass(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/pass/*_test.yaml")
	require.NoError(t, err)
	require.Greater(t, len(paths), 6)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			passes(t, path)
		})
	}
}

// TestGoldenFailures compares what tests say that are wrong, or files of tests. Each of them fails.
func TestGoldenFailures(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/fail/*_test.yaml")
	require.NoError(t, err)
	require.Greater(t, len(paths), 1)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			suite, err := playtest.Load(path)
			if err != nil {
				var invalid *playtest.InvalidError
				require.ErrorAs(t, err, &invalid)
				b.WriteString(invalid.File.FormatAll(invalid.Found))
			} else {
				for _, report := range all(suite) {
					require.False(t, report.Passed(), report.Test.Name)
					b.WriteString("# " + report.Test.Name + "\n" + strings.Join(texts(report), "\n") + "\n")
				}
			}
			testenv.Golden(t, *update, filepath.Join("fail", strings.TrimSuffix(filepath.Base(path), ".yaml")), b.String())
		})
	}
}

// TestUpdate: what came takes the place of what was expected, after which the tests pass; comments
// and what is right stay as they are.
func TestUpdate(t *testing.T) {
	t.Parallel()
	book, err := os.ReadFile("testdata/fail/book.yaml")
	require.NoError(t, err)
	tests, err := os.ReadFile("testdata/update/before_test.yaml")
	require.NoError(t, err)
	path := write(t, string(book), string(tests))
	suite, err := playtest.Load(path)
	require.NoError(t, err)
	after, changed, left, err := playtest.UpdatedFile(suite, all(suite))
	require.NoError(t, err)
	require.Equal(t, 4, changed)
	require.Len(t, left, 2)
	require.Equal(t, []string{"no answer", "in one line"}, []string{left[0].Test.Name, left[1].Test.Name})
	require.NoError(t, os.WriteFile(path, after, 0o600))
	testenv.Golden(t, *update, "update/after", string(after))
	again, err := playtest.Load(path)
	require.NoError(t, err)
	for _, report := range all(again) {
		require.Equal(t, report.Test.Name == "no answer" || report.Test.Name == "in one line", !report.Passed(), "%s: %v", report.Test.Name, texts(report))
	}
}

// TestRecipes runs the tests of the recipes. Each recipe has some, which take all of its steps,
// policies and routes.
func TestRecipes(t *testing.T) {
	t.Parallel()
	pages, err := docs.WrittenExamples("../../..")
	require.NoError(t, err)
	seen := 0
	for _, example := range slices.Concat(slices.Collect(maps.Values(pages))...) {
		_, rest, found := strings.Cut(example.Text, "metadata: {name: ")
		if !example.Is("yaml") || !found || !strings.HasPrefix(rest, "recipe_") {
			continue
		}
		seen++
		name, _, _ := strings.Cut(rest, "}")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tests, err := os.ReadFile(filepath.Join("testdata", "recipes", name+"_test.yaml"))
			require.NoError(t, err, "each recipe has tests")
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(example.Text), 0o600))
			path := filepath.Join(dir, name+"_test.yaml")
			require.NoError(t, os.WriteFile(path, tests, 0o600))
			passes(t, path)
		})
	}
	paths, err := filepath.Glob("testdata/recipes/*_test.yaml")
	require.NoError(t, err)
	require.Len(t, paths, seen)
}

// BenchmarkFifty runs fifty tests of a playbook with one step of HTTP, which fails twice.
func BenchmarkFifty(b *testing.B) {
	suite, err := playtest.Load("../../../playbooks/error_retry_test.yaml")
	require.NoError(b, err)
	fifty := make([]playtest.SelectedTest, 50)
	for i := range fifty {
		fifty[i] = playtest.SelectedTest{Suite: suite, Test: suite.Tests.Tests[0]}
	}
	for b.Loop() {
		for _, report := range playtest.RunAll(fifty, playtest.Options{}, nil) {
			require.True(b, report.Passed())
		}
	}
}
