// Package build describes the build of the running program.
package build

import (
	"cmp"
	"fmt"
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
