package terminal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProgramName: what is printed can be pasted where starter was called.
func TestProgramName(t *testing.T) {
	t.Parallel()
	for called, want := range map[string]string{
		"starter": "starter", "bin/starter": "bin/starter", "./starter": "./starter", "/opt/a b/starter": "'/opt/a b/starter'",
		"/tmp/go-build12/b001/exe/starter": "starter", "/opt/it's/starter": `'/opt/it'\''s/starter'`,
	} {
		require.Equal(t, want, programName(called))
	}
}
