package repo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// classified is the one file that knows the types of the server's errors.
const classified = "internal/base/connect/errors.go"

// answering is the file that makes an error as the server would, and looks at none.
const answering = "internal/base/codec/codec.go"

// TestErrorsOfTheServerAreClassifiedOnce: which error of the server means what is
// decided in one file, so that two callers do not take the same error for different
// things. A question that is missing there becomes a function there.
func TestErrorsOfTheServerAreClassifiedOnce(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
	require.NoError(t, err)
	found := false
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "devserver/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and git does not know yet
		}
		require.NoError(t, err)
		for _, word := range []string{"go.temporal.io/api/serviceerror", "google.golang.org/grpc/codes", "AcceptedUpdateCompletedWorkflow", "WorkflowUpdateServiceTimeout"} {
			switch has := strings.Contains(string(text), word); {
			case name == classified:
				found = found || has
			case has && name != answering:
				t.Errorf("%s knows %s: ask a function of %s", name, word, classified)
			}
		}
	}
	require.True(t, found)
}
