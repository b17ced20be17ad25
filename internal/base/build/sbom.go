package build

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"reprise/interpreter/lists"
)

// Bill is a software bill of materials in CycloneDX 1.6 format: the modules that a program was built from. It lists
// only what the binary records about itself, so equal binaries have equal bills.
type Bill struct {
	Format      string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	// Version counts corrections of a bill, from 1.
	Version      int            `json:"version"`
	Metadata     Metadata       `json:"metadata"`
	Components   []Component    `json:"components"`
	Dependencies []Dependencies `json:"dependencies"`
}

// Metadata describes the program of a bill.
type Metadata struct {
	Timestamp  string    `json:"timestamp,omitempty"` // of the commit
	Component  Component `json:"component"`
	Properties []Setting `json:"properties,omitempty"`
}

// Component is a program or one of its modules.
type Component struct {
	Type    string `json:"type"` // application or library
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	PURL    string `json:"purl"` // under which databases of vulnerabilities know it
	Hashes  []Hash `json:"hashes,omitempty"`
}

// Hash is the checksum of a module's files from go.sum, in hexadecimal digits.
type Hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// Dependencies lists the components that a component needs, by bom-ref.
type Dependencies struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// Setting is a build setting, such as the operating system or the tags.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// WriteBill writes the bill of materials of this program as JSON. It fails if the program was built without module
// information, or if w fails.
func WriteBill(w io.Writer) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("this program was built without information about its modules")
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(newBill(info))
}

// newBill returns the bill of a program with the given build information.
func newBill(info *debug.BuildInfo) Bill {
	main := goComponent(info.Main.Path, info.Main.Version, "")
	main.Type, main.Name = "application", path.Base(info.Path)
	if inside := strings.TrimPrefix(strings.TrimPrefix(info.Path, info.Main.Path), "/"); inside != "" {
		main.PURL += "#" + inside
	}
	main.Ref = main.PURL
	modules := lists.Map(info.Deps, moduleComponent)
	modules = append(modules, goComponent("std", strings.TrimPrefix(info.GoVersion, "go"), ""))
	bill := Bill{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: Metadata{Component: main}, Components: modules}
	refs := lists.Map(modules, func(c Component) string { return c.Ref })
	slices.Sort(refs)
	bill.Dependencies = []Dependencies{{Ref: main.Ref, DependsOn: slices.Compact(refs)}}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.time" {
			bill.Metadata.Timestamp = setting.Value
		}
		if setting.Value != "" && !strings.HasPrefix(setting.Key, "-") { // flags can hold paths of the machine
			bill.Metadata.Properties = append(bill.Metadata.Properties, Setting{Name: "go:build:" + setting.Key, Value: setting.Value})
		}
	}
	if commit != "" {
		bill.Metadata.Properties = append(bill.Metadata.Properties, Setting{Name: "go:build:vcs.revision", Value: commit})
	}
	return bill
}

// moduleComponent returns the component of a module, or of its replacement.
func moduleComponent(module *debug.Module) Component {
	if module.Replace != nil {
		module = module.Replace
	}
	return goComponent(module.Path, module.Version, module.Sum)
}

// goComponent returns the component of a Go module. sum is its go.sum checksum, "" if unknown.
func goComponent(name, version, sum string) Component {
	version = strings.TrimPrefix(cmp.Or(version, "(devel)"), "(devel)")
	c := Component{Type: "library", Name: name, Version: version, PURL: "pkg:golang/" + strings.ToLower(name)}
	if version != "" {
		c.PURL += "@" + url.QueryEscape(version)
	}
	c.Ref = c.PURL
	if digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(digest) > 0 {
		c.Hashes = []Hash{{Algorithm: "SHA-256", Content: hex.EncodeToString(digest)}}
	}
	return c
}
