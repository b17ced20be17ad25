package build_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/build"
)

// bill is the bill of materials of the test's own binary.
func bill(t *testing.T) (parsed build.Bill, text []byte) {
	t.Helper()
	var written bytes.Buffer
	require.NoError(t, build.WriteBill(&written))
	require.NoError(t, json.Unmarshal(written.Bytes(), &parsed))
	return parsed, written.Bytes()
}

// TestBillOfThisBinary: the test's own binary, of whose modules go test records none, has the version of Go.
func TestBillOfThisBinary(t *testing.T) {
	t.Parallel()
	found, _ := bill(t)
	require.Equal(t, "application", found.Metadata.Component.Type)
	require.Equal(t, "std", found.Components[len(found.Components)-1].Name)
}

// TestBillStays: the same binary says the same, and nothing of the machine that built it.
func TestBillStays(t *testing.T) {
	t.Parallel()
	_, first := bill(t)
	_, second := bill(t)
	require.Equal(t, string(first), string(second))
	folder, err := os.Getwd()
	require.NoError(t, err)
	require.NotContains(t, string(first), folder)
}
