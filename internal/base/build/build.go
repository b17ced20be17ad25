// Package build describes the build of the running program.
package build

import (
	"cmp"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"go.temporal.io/sdk/temporal"
)

// commit is set by the linker for builds outside of the repository, such as images: -ldflags '-X
// reprise/internal/base/build.commit=…'.
var commit string

// Info describes a build: the output of `starter version --output json`.
type Info struct {
	Reprise  string `json:"reprise"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a changed checkout
	Go       string `json:"go"`
	SDK      string `json:"temporal_sdk"`
}

// Read returns what is known about this build; unknown fields are "unknown".
func Read() Info {
	version := Info{Reprise: "unknown", Go: "unknown", SDK: temporal.SDKVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	version.Commit = commit
	version.Reprise, version.Go = cmp.Or(info.Main.Version, version.Reprise), info.GoVersion
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			version.Commit = setting.Value
		case "vcs.modified":
			version.Modified = setting.Value == "true"
		}
	}
	return version
}

// Variables of the environment that name a build and its deployment, for workers and for the starter that comes with them.
const (
	Variable           = "REPRISE_BUILD"
	DeploymentVariable = "REPRISE_DEPLOYMENT"
)

// shortCommit is how many digits of a commit identify it.
const shortCommit = 12

// ID identifies the build among the builds of a deployment: version and commit. It is "" if these do not identify it, as those
// of a program that was built from a changed checkout.
func (v Info) ID() string {
	version := strings.TrimPrefix(v.Reprise, "(devel)")
	commit := v.Commit[:min(len(v.Commit), shortCommit)]
	switch {
	case commit == "" || v.Modified || version == "unknown":
		return ""
	case strings.Contains(version, commit): // as the version of a build between two releases
		return version
	}
	return strings.TrimPrefix(version+"-"+commit, "-")
}

// CurrentID is the ID of this build: the one in the environment, else that of Read; "" if neither identifies it.
func CurrentID() string { return cmp.Or(os.Getenv(Variable), Read().ID()) }

// longestName bounds the names of deployments and builds in bytes. A server takes some 480, which its operator may lower.
const longestName = 255

// CheckDeployment returns an error if the server would refuse the name of a deployment, whose parts it separates by . and :.
func CheckDeployment(name string) error {
	if strings.ContainsAny(name, ".:") {
		return fmt.Errorf("%q contains . or :, which Temporal does not allow", name)
	}
	return CheckID(name)
}

// CheckID returns an error if the server would refuse the ID of a build.
func CheckID(id string) error {
	switch {
	case strings.HasPrefix(id, "__"):
		return fmt.Errorf("%q begins with __, which Temporal reserves", id)
	case len(id) > longestName:
		return fmt.Errorf("%q has %d bytes, expected at most %d", id[:20]+"…", len(id), longestName)
	}
	return nil
}

// Text returns the build for people to read, one line per part.
func (v Info) Text() string {
	var b strings.Builder
	commit := cmp.Or(v.Commit, "unknown")
	if v.Modified {
		commit += " (with changes)"
	}
	for _, line := range [][2]string{
		{"starter", v.Reprise},
		{"commit", commit},
		{"go", v.Go},
		{"temporal sdk", v.SDK},
	} {
		fmt.Fprintf(&b, "%-13s %s\n", line[0], line[1])
	}
	return b.String()
}
