package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"reprise/internal/base/build"
)

// TestBillHasTheModulesOfTheBinary: what go version -m reads from the file is what the program says of itself: each
// module with its version and sum, and the version of Go. testdata/cyclonedx.json has the rules of the schema of CycloneDX
// 1.6 for the parts that a bill has: required fields, closed objects, patterns and enumerations.
func TestBillHasTheModulesOfTheBinary(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "worker")
	output, err := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", output)
	listed, err := exec.Command("go", "version", "-m", binary).Output()
	require.NoError(t, err)
	text, err := exec.Command(binary, "--sbom").Output()
	require.NoError(t, err)
	var bill build.Bill
	require.NoError(t, json.Unmarshal(text, &bill))
	require.Equal(t, modulesListed(t, string(listed)), modulesOf(bill))
	require.Equal(t, "worker", bill.Metadata.Component.Name)
	require.Equal(t, "pkg:golang/reprise#worker", bill.Metadata.Component.PURL)
	require.Equal(t, bill.Metadata.Component.Ref, bill.Dependencies[0].Ref)
	require.Len(t, bill.Dependencies[0].DependsOn, len(bill.Components))
	schema, err := jsonschema.NewCompiler().Compile("testdata/cyclonedx.json")
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(document))
	for _, member := range []string{"bomFormat", "specVersion"} {
		broken := map[string]any{}
		require.NoError(t, json.Unmarshal(text, &broken))
		delete(broken, member)
		require.Error(t, schema.Validate(broken), member)
	}
}

// modulesListed are versions and sums by module, as go version -m lists them.
func modulesListed(t *testing.T, listed string) map[string]string {
	t.Helper()
	modules := map[string]string{}
	for line := range strings.Lines(listed) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && strings.HasPrefix(fields[1], "go1."):
			modules["std"] = strings.TrimPrefix(fields[1], "go") + " "
		case len(fields) == 4 && fields[0] == "dep":
			digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(fields[3], "h1:"))
			require.NoError(t, err)
			modules[fields[1]] = fields[2] + " " + hex.EncodeToString(digest)
		}
	}
	require.Greater(t, len(modules), 10)
	return modules
}

// modulesOf are versions and sums by module, as a bill has them.
func modulesOf(bill build.Bill) map[string]string {
	modules := map[string]string{}
	for _, component := range bill.Components {
		sum := ""
		if len(component.Hashes) > 0 {
			sum = component.Hashes[0].Content
		}
		modules[component.Name] = component.Version + " " + sum
	}
	return modules
}
