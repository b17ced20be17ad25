package cli

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"

	"go.temporal.io/sdk/temporal"
)

// VersionInfo is the output of `starter version --output json`.
type VersionInfo struct {
	Reprise  string `json:"reprise"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a changed checkout
	Go       string `json:"go"`
	SDK      string `json:"temporal_sdk"`
}

// ReadVersion is what the build says of itself; what it does not say is "unknown".
func ReadVersion() VersionInfo {
	version := VersionInfo{Reprise: "unknown", Go: "unknown", SDK: temporal.SDKVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
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

// Text is the version for people, a line for each part.
func (v VersionInfo) Text() string {
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
