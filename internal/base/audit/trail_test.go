package audit_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/audit"
	"reprise/internal/base/secrets"
	"reprise/internal/test/testenv"
)

// startOf is a line about a run.
func startOf(run string) audit.LoggedAction {
	return audit.LoggedAction{
		Actor: "ci", Proof: audit.ProofToken, Action: audit.Start, Target: audit.ActionTarget{Playbook: "nightly", Run: run}, Outcome: audit.Done,
	}
}

// openTrail opens a log, which ends with the test.
func openTrail(t *testing.T, path string) *audit.Trail {
	t.Helper()
	trail, err := audit.Open(path, "serve", nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = trail.Close() })
	return trail
}

// linesOf are the lines of a file.
func linesOf(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func verify(t *testing.T, path string) (audit.VerifyReport, error) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	return audit.Verify(file, "")
}

// TestLinesAreChained: each line has the SHA-256 of the bytes of the line before, also across restarts and for writers that write
// at the same time.
func TestLinesAreChained(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	for range 3 {
		trail := openTrail(t, path)
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() { require.NoError(t, trail.Write(startOf(fmt.Sprintf("run-%d", i)))) })
		}
		testenv.Wait(t, group.Wait, "the writers")
		require.NoError(t, trail.Close())
	}
	lines := linesOf(t, path)
	require.Len(t, lines, 60)
	previous := ""
	for i, text := range lines {
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &line))
		require.InDelta(t, i+1, line["n"], 0)
		require.Equal(t, previous, line["previous"], "line %d", i+1)
		require.Equal(t, "serve", line["program"])
		require.Equal(t, "token", line["proof"])
		sum := sha256.Sum256([]byte(text))
		previous = hex.EncodeToString(sum[:])
	}
	report, err := verify(t, path)
	require.NoError(t, err)
	require.Equal(t, audit.VerifyReport{Lines: 60, Last: previous}, report)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// TestVerifyNamesTheFirstGap: every line that is changed, removed, inserted, swapped or cut is found, at its place.
func TestVerifyNamesTheFirstGap(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	trail := openTrail(t, path)
	for i := range 5 {
		require.NoError(t, trail.Write(startOf(fmt.Sprintf("run-%d", i+1))))
	}
	good := linesOf(t, path)
	for name, c := range map[string]struct {
		change func(lines []string) []string
		line   int64
		says   string
	}{
		"a name":          {func(l []string) []string { l[1] = strings.Replace(l[1], "ci", "cj", 1); return l }, 3, "line 2 was changed"},
		"a space":         {func(l []string) []string { l[1] = strings.Replace(l[1], `,"time"`, `, "time"`, 1); return l }, 2, "cannot be read"},
		"a member":        {func(l []string) []string { l[1] = strings.Replace(l[1], `{`, `{"x":1,`, 1); return l }, 2, "cannot be read"},
		"removed":         {func(l []string) []string { return append(l[:1], l[2:]...) }, 2, "has the number 3"},
		"the first":       {func(l []string) []string { return l[1:] }, 1, "has the number 2"},
		"inserted":        {func(l []string) []string { return append(l[:2], l[1:]...) }, 3, "has the number 2"},
		"swapped":         {func(l []string) []string { l[1], l[2] = l[2], l[1]; return l }, 2, "has the number 3"},
		"empty":           {func(l []string) []string { return append(l[:2], append([]string{""}, l[2:]...)...) }, 3, "cannot be read"},
		"the last unread": {func(l []string) []string { l[4] = l[4][:30]; return l }, 5, "cannot be read"},
		"another beginning": {func(l []string) []string {
			l[0] = strings.Replace(l[0], `"previous":""`, `"previous":"00"`, 1)
			return l
		}, 1, "missing"},
		"a long line": {func(l []string) []string { l[1] = strings.Repeat("x", audit.MostLine+1); return l }, 2, "longer than any line"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Join(c.change(append([]string{}, good...)), "\n") + "\n"
			_, err := audit.Verify(strings.NewReader(text), "")
			var gap *audit.ChainGap
			require.ErrorAs(t, err, &gap)
			require.Equal(t, c.line, gap.Line, gap.Message)
			require.Contains(t, gap.Message, c.says)
		})
	}
	whole := strings.Join(good, "\n") + "\n"
	for count := range 6 {
		part := strings.Join(good[:count], "\n")
		sum := sha256.Sum256([]byte(good[2]))
		_, err := audit.Verify(strings.NewReader(part+"\n"[:min(count, 1)]), hex.EncodeToString(sum[:]))
		require.Equal(t, count < 3, err != nil, "%d lines: %v", count, err)
	}
	for at := range whole { // a part of the file is whole only where a line ends
		report, err := audit.Verify(strings.NewReader(whole[:at]), "")
		if at == 0 || whole[at-1] == '\n' {
			require.NoError(t, err)
			require.Equal(t, int64(strings.Count(whole[:at], "\n")), report.Lines)
		} else {
			require.ErrorContains(t, err, "has no end")
		}
	}
}

// TestTornLineIsSaid: wherever the program is killed, the log is continued, nothing of it is removed, and a line says that the one
// before was cut short.
func TestTornLineIsSaid(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first := filepath.Join(folder, "first.log")
	trail := openTrail(t, first)
	require.NoError(t, trail.Write(startOf("one")))
	require.NoError(t, trail.Write(startOf("two")))
	whole, err := os.ReadFile(first)
	require.NoError(t, err)
	line := bytes.IndexByte(whole, '\n') + 1
	for _, at := range []int{1, 2, len(`{"n":1,"time":"`), 40, line / 2, line - 1, line, line + 1, line + 20, len(whole) - 2, len(whole) - 1} {
		for _, broken := range []string{"", "\n"} { // killed again after the line was ended
			path := filepath.Join(folder, fmt.Sprintf("cut-%d-%d.log", at, len(broken)))
			require.NoError(t, os.WriteFile(path, append(bytes.Clone(whole[:at]), broken...), 0o600))
			again := openTrail(t, path)
			require.NoError(t, again.Write(startOf("three")))
			require.NoError(t, again.Close())
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.HasPrefix(text, whole[:at]))
			report, err := verify(t, path)
			require.NoError(t, err, "%d %q", at, text)
			torn := whole[at-1] != '\n' && whole[at] != '\n' || whole[at-1] == '\n' && broken != ""
			require.Equal(t, torn, len(report.Torn) == 1, "%d %q", at, text)
			require.Equal(t, torn, strings.Contains(string(text), `"action":"log-continued"`))
		}
	}
}

// TestForeignFilesAreLeftAlone: a file that is no audit log is refused and not changed.
func TestForeignFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for i, text := range []string{"hello", "hello\n", "a: b\nc: d\n", "{\"n\":1}\n", strings.Repeat("x", 100<<10), "{\"n\":1,\"time\":\"" + strings.Repeat("x", 100<<10)} {
		path := filepath.Join(folder, fmt.Sprint(i))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := audit.Open(path, "serve", nil)
		require.ErrorContains(t, err, "not one of an audit log", "%.40q", text)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(after))
	}
	_, err := audit.Open("/dev/null", "serve", nil)
	require.ErrorContains(t, err, "not a regular file")
	_, err = audit.Open(filepath.Join(folder, "absent", "audit.log"), "serve", nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// lockVariable is set for a process of this test that holds the lock of a log.
const lockVariable = "REPRISE_TEST_AUDIT_LOCK"

// TestOneProcessWrites: a log has one writer, until that ends, be it killed.
func TestOneProcessWrites(t *testing.T) {
	if path := os.Getenv(lockVariable); path != "" {
		trail, err := audit.Open(path, "serve", nil)
		require.NoError(t, err)
		require.NoError(t, trail.Write(startOf("of the other")))
		fmt.Println("locked")
		select {}
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	own, err := os.Executable()
	require.NoError(t, err)
	other := exec.CommandContext(t.Context(), own, "-test.run=^TestOneProcessWrites$")
	other.Env = append(os.Environ(), lockVariable+"="+path)
	out, err := other.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "locked\n", line)
	_, err = audit.Open(path, "serve", nil)
	require.ErrorIs(t, err, audit.ErrLocked)
	require.NoError(t, other.Process.Kill())
	testenv.Wait(t, func() { _ = other.Wait() }, "the end of the other")
	trail := openTrail(t, path)
	require.NoError(t, trail.Write(startOf("mine")))
	report, err := verify(t, path)
	require.NoError(t, err)
	require.Equal(t, int64(2), report.Lines)
}

// TestWhatCannotBeLogged: an action whose line would be lost is refused, and nothing was written.
func TestWhatCannotBeLogged(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(t *testing.T, path string){
		"removed": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"moved":   func(t *testing.T, path string) { require.NoError(t, os.Rename(path, path+".1")) },
		"replaced": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path+".new", nil, 0o600))
			require.NoError(t, os.Rename(path+".new", path))
		},
		"cut short": func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 10)) },
		"written to": func(t *testing.T, path string) {
			file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = file.WriteString("more\n")
			require.NoError(t, err)
			require.NoError(t, file.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "audit.log")
			trail := openTrail(t, path)
			end, err := trail.Begin(startOf("one"))
			require.NoError(t, err)
			breaks(t, path)
			before, _ := os.ReadFile(path)
			require.ErrorIs(t, end(audit.ActionTarget{Run: "one"}, audit.Done), audit.ErrUnwritable)
			_, err = trail.Begin(startOf("two"))
			require.ErrorIs(t, err, audit.ErrUnwritable)
			after, _ := os.ReadFile(path)
			require.Equal(t, before, after)
		})
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	trail := openTrail(t, path)
	require.NoError(t, os.Rename(path, path+".1"))
	require.ErrorIs(t, trail.Write(startOf("one")), audit.ErrUnwritable)
	require.NoError(t, os.Rename(path+".1", path))
	require.NoError(t, trail.Write(startOf("two")), "the file is back")
	var none *audit.Trail
	require.NoError(t, none.Write(startOf("one")))
	end, err := none.Begin(startOf("one"))
	require.NoError(t, err)
	require.NoError(t, end(audit.ActionTarget{}, audit.Done))
}

// TestLinesAreBoundedAndMasked: what clients choose neither fills the log nor carries a secret into it, and cannot forge a line.
func TestLinesAreBoundedAndMasked(t *testing.T) {
	t.Parallel()
	masked := &secrets.Masker{}
	masked.AddToken("a-token-of-some-length-7")
	path := filepath.Join(t.TempDir(), "audit.log")
	trail, err := audit.Open(path, "worker", masked)
	require.NoError(t, err)
	t.Cleanup(func() { _ = trail.Close() })
	long := strings.Repeat("\x01", 25*audit.MostName)
	require.NoError(t, trail.Write(audit.LoggedAction{
		Actor: "ada\n{\"n\":9}", Proof: audit.ProofClaimed, Action: audit.Start, Outcome: audit.Done,
		Target: audit.ActionTarget{Run: "of a-token-of-some-length-7", Playbook: "bad \xff utf-8"},
	}))
	require.NoError(t, trail.Write(audit.LoggedAction{
		Actor: long, Proof: audit.ProofClaimed, Action: audit.Start, Outcome: audit.Done, Type: long, Target: audit.ActionTarget{
			Playbook: long, Run: long, RunID: long[:36], Step: long, Connection: long, State: long, File: long,
		},
	}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), "a-token-of-some-length-7")
	report, err := verify(t, path)
	require.NoError(t, err)
	require.Equal(t, int64(2), report.Lines)
	require.Less(t, len(text), audit.MostLine)
	require.Equal(t, 8*audit.MostName+36, strings.Count(string(text), `\u0001`))
	require.NoError(t, trail.Close())
	require.NoError(t, openTrail(t, path).Write(startOf("three")))
}
