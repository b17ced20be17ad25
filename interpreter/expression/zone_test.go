package expression

import (
	"archive/zip"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var writeZones = flag.Bool("zones", false, "write zones.bin from the zoneinfo.zip of Go")

// TestZones reads every zone of zones.bin, and compares one with what is known of it.
func TestZones(t *testing.T) {
	t.Parallel()
	if *writeZones {
		require.NoError(t, os.WriteFile("zones.bin", zonesOfGo(t), 0o644))
		t.Skip("zones.bin is written; run the test again")
	}
	index, _, _ := strings.Cut(zoneRules, "\n\n")
	names := strings.Split(strings.TrimSpace(index), "\n")
	require.Greater(t, len(names), 500)
	for _, line := range names {
		name, _, _ := strings.Cut(line, " ")
		zone, err := LoadZone(name)
		require.NoError(t, err, name)
		require.NotEmpty(t, zone.String())
		again, err := LoadZone(name)
		require.NoError(t, err, name)
		require.Equal(t, zone, again)
	}
	berlin, err := LoadZone("Europe/Berlin")
	require.NoError(t, err)
	require.Equal(t, 2*time.Hour, ZoneOffset(time.Date(2049, time.July, 1, 0, 0, 0, 0, time.UTC), berlin))
	require.Equal(t, time.Hour, ZoneOffset(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), berlin))
	for _, name := range []string{"Local", "europe/berlin", "../UTC", "Europe/Berlin 1", "Europe", "\n"} {
		_, err := LoadZone(name)
		require.ErrorContains(t, err, "there is no time zone", name)
	}
}

// zonesOfGo are the rules that Go brings along, equal ones once.
func zonesOfGo(t *testing.T) []byte {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, archive.Close()) })
	slices.SortFunc(archive.File, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	var index, rules bytes.Buffer
	index.WriteByte('\n')
	for _, file := range archive.File {
		if strings.HasSuffix(file.Name, "/") {
			continue
		}
		reader, err := file.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(reader)
		require.NoError(t, err)
		at := bytes.Index(rules.Bytes(), text)
		if at < 0 {
			at = rules.Len()
			rules.Write(text)
		}
		fmt.Fprintf(&index, "%s %d %d\n", file.Name, at, len(text))
	}
	index.WriteByte('\n')
	return append(index.Bytes(), rules.Bytes()...)
}
