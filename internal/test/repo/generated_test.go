package repo_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// generatedMark is what a generated file that people read says of itself, before the command that writes it.
const generatedMark = "<!-- Generated: "

// writesGolden is a test that compares testdata/NAME.txt with what the code makes now, and rewrites it on request.
var writesGolden = regexp.MustCompile(`\b(testenv|samples)\.Golden\(`)

// TestGeneratedFilesAreMarked: .gitattributes lists the files that commands write. Documents and pictures among them
// also say so themselves.
func TestGeneratedFilesAreMarked(t *testing.T) {
	t.Parallel()
	files := repositoryFiles(t)
	isMarked, isGolden, marked := markedFiles(t, files), goldenFiles(t, files), 0
	for _, name := range files {
		if isMarked(name) {
			marked++
		}
		isText := slices.Contains([]string{".md", ".svg"}, path.Ext(name)) || name == "llms.txt"
		switch says := isText && strings.Contains(read(t, name), "\n"+generatedMark); {
		case says && !isMarked(name):
			t.Errorf("%s says that it is generated; list it in .gitattributes", name)
		case isText && !says && isMarked(name):
			t.Errorf("%s is generated; have its generator write %q and the command", name, generatedMark)
		case isGolden(name) && !isMarked(name):
			t.Errorf("make golden writes %s; list it in .gitattributes", name)
		}
	}
	require.Greater(t, marked, 600)
	require.True(t, strings.HasPrefix(read(t, "schema/playbook.schema.json"), "{\n \"$comment\": \"Generated: make reference\","))
}

// goldenFiles returns whether tests compare a file with what the code makes now, and rewrite it on request: the files
// of package samples and testenv in testdata, and those named so.
func goldenFiles(t *testing.T, files []string) func(name string) bool {
	t.Helper()
	packages := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") && writesGolden.MatchString(read(t, name)) {
			packages[path.Dir(name)] = true
		}
	}
	return func(name string) bool {
		folder, _, isTestdata := strings.Cut(name, "/testdata/")
		isText := path.Ext(name) == ".txt" && packages[folder]
		return isTestdata && (isText || path.Ext(name) == ".out" || strings.Contains(name, ".golden."))
	}
}

// markedFiles returns whether .gitattributes marks a file as generated. A pattern that matches no file fails the
// test.
func markedFiles(t *testing.T, files []string) func(name string) bool {
	t.Helper()
	var all []string
	for line := range strings.Lines(read(t, ".gitattributes")) {
		if words := strings.Fields(line); len(words) > 1 && slices.Contains(words, "linguist-generated") {
			one := strings.NewReplacer(`\*\*`, `.*`, `\*`, `[^/]*`).Replace(regexp.QuoteMeta(words[0]))
			require.True(t, slices.ContainsFunc(files, regexp.MustCompile("^"+one+"$").MatchString), "%s is no file; take it off .gitattributes", words[0])
			all = append(all, one)
		}
	}
	return regexp.MustCompile("^(" + strings.Join(all, "|") + ")$").MatchString
}

// repositoryFiles are the files of the repository, those included that git does not know yet.
func repositoryFiles(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard").Output()
	require.NoError(t, err)
	return slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return os.IsNotExist(err) // deleted, and git does not know yet
	})
}
