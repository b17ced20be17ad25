package main

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/temporal"
)

// versionInfo is the output of `starter version --output json`.
type versionInfo struct {
	Reprise  string `json:"reprise"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a changed checkout
	Go       string `json:"go"`
	SDK      string `json:"temporal_sdk"`
}

func readVersion() versionInfo {
	version := versionInfo{Reprise: "unknown", Go: "unknown", SDK: temporal.SDKVersion}
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

func newVersionCommand(a *app) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: "version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version := readVersion()
			return a.show(output, version, version.text())
		},
	}
	outputFlag(command, &output)
	return command
}

func (v versionInfo) text() string {
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
