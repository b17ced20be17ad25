package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestALogFileThatIsMovedAwayBeginsAgain, as tools do that rotate logs.
func TestALogFileThatIsMovedAwayBeginsAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte("before\n"), 0o600))
	file, err := openLogFile(path)
	require.NoError(t, err)
	defer file.closeFile()
	write := func(text string) {
		file.checked = time.Time{} // long ago
		_, err := file.Write([]byte(text))
		require.NoError(t, err)
	}
	write("one\n")
	require.NoError(t, os.Rename(path, path+".1"))
	write("two\n")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	write("three\n")
	for name, want := range map[string]string{path + ".1": "before\none\n", path: "three\n"} {
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

// TestLogFileHasNoControlCharacters: what a terminal would obey is escaped, and reads as it was.
func TestLogFileHasNoControlCharacters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "worker.log")
	file, err := openLogFile(path)
	require.NoError(t, err)
	const hostile = "a\u009b31m\u202egnp\u2028\u007f é 日本 😀"
	slog.New(slog.NewJSONHandler(file, nil)).Info(hostile)
	file.closeFile()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, raw := range []string{"\u009b", "\u202e", "\u2028", "\u007f"} {
		require.NotContains(t, string(text), raw)
	}
	require.Contains(t, string(text), "é 日本 😀")
	var record struct{ Msg string }
	require.NoError(t, json.Unmarshal(text, &record))
	require.Equal(t, hostile, record.Msg)
}
