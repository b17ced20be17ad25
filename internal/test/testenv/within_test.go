package testenv

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLimitsGrowWithTheLoad(t *testing.T) {
	for name, c := range map[string]struct {
		given, load string
		processors  int
		want        float64
	}{
		"nothing else to do":        {load: "0.20 0.97 2.82 1/236 751\n", processors: 2, want: 1},
		"busy for a while":          {load: "18.33 16.56 12.37 2/236 751\n", processors: 2, want: 9.165},
		"busy since a moment ago":   {load: "0.20 0.97 2.82 12/236 751\n", processors: 2, want: 6},
		"as much as it can do":      {load: "7.90 8.00 8.00 8/236 751\n", processors: 8, want: 1},
		"hopeless":                  {load: "900 900 900 900/999 751\n", processors: 1, want: mostPatience},
		"given":                     {given: "2.5", load: "18.33 16.56 12.37 2/236 751\n", processors: 2, want: 2.5},
		"given, and too little":     {given: "0", processors: 2, want: 1},
		"given, and not a number":   {given: "much", load: "4 4 4 1/9 7\n", processors: 2, want: 2},
		"a machine that tells none": {processors: 2, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "loadavg")
			if c.load != "" {
				require.NoError(t, os.WriteFile(file, []byte(c.load), 0o600))
			}
			require.InDelta(t, c.want, slownessFactor(c.given, file, c.processors), 0.001)
		})
	}
	t.Setenv("TEST_PATIENCE", "3")
	require.Equal(t, 30*time.Second, Within(10*time.Second))
}
