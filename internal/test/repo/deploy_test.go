package repo_test

import (
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"reprise/interpreter/lists"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// deployed is what the tests read of an object of Kubernetes.
type deployed struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	StringData map[string]string `yaml:"stringData"`
	Data       map[string]string `yaml:"data"`
	Spec       struct {
		Selector any `yaml:"selector"`
		Template struct {
			Metadata struct {
				Labels map[string]string `yaml:"labels"`
			} `yaml:"metadata"`
			Spec pod `yaml:"spec"`
		} `yaml:"template"`
		Ports []struct {
			TargetPort string `yaml:"targetPort"`
		} `yaml:"ports"`
	} `yaml:"spec"`
}

type pod struct {
	Grace    int `yaml:"terminationGracePeriodSeconds"`
	Security struct {
		RunAsNonRoot bool `yaml:"runAsNonRoot"`
	} `yaml:"securityContext"`
	Containers []struct {
		Args []string `yaml:"args"`
		Env  []struct {
			Name      string `yaml:"name"`
			ValueFrom struct {
				Secret struct{ Name, Key string } `yaml:"secretKeyRef"`
			} `yaml:"valueFrom"`
		} `yaml:"env"`
		EnvFrom []struct {
			Config struct{ Name string } `yaml:"configMapRef"`
		} `yaml:"envFrom"`
		Ports     []struct{ Name string }            `yaml:"ports"`
		Liveness  probe                              `yaml:"livenessProbe"`
		Readiness probe                              `yaml:"readinessProbe"`
		Resources struct{ Limits map[string]string } `yaml:"resources"`
		Mounts    []struct {
			Name string `yaml:"name"`
			Path string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	} `yaml:"containers"`
	Volumes []struct {
		Name   string `yaml:"name"`
		Secret struct {
			Name  string                       `yaml:"secretName"`
			Items []struct{ Key, Path string } `yaml:"items"`
		} `yaml:"secret"`
	} `yaml:"volumes"`
}

type probe struct {
	Get    struct{ Path, Port string } `yaml:"httpGet"`
	Socket struct{ Port string }       `yaml:"tcpSocket"`
}

// flagHeading is a flag in the reference of a program.
var flagHeading = regexp.MustCompile("(?m)^\\| `--([a-z-]+)|^### `?--([a-z-]+)")

// flagsOf are the flags of a program in the reference.
func flagsOf(t *testing.T, page, from, to string) map[string]bool {
	t.Helper()
	_, text, found := strings.Cut(read(t, page), from)
	require.True(t, found, page)
	if to != "" {
		text, _, _ = strings.Cut(text, to)
	}
	flags := map[string]bool{}
	for _, match := range flagHeading.FindAllStringSubmatch(text, -1) {
		flags[match[1]+match[2]] = true
	}
	require.NotEmpty(t, flags)
	return flags
}

// manifests are the objects of the examples, by kind and name.
func manifests(t *testing.T) map[string]deployed {
	t.Helper()
	all := map[string]deployed{}
	const folder = "docs/how-to/deploy/"
	decoder := yaml.NewDecoder(strings.NewReader(read(t, folder+"kubernetes.yaml") + "---\n" + read(t, folder+"kubernetes-builds.yaml")))
	for {
		var one deployed
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all[one.Kind+" "+one.Metadata.Name] = one
	}
}

// TestKubernetesExample: objects name only what there is, programs get flags that they have, and
// pods stop as slowly as a worker needs.
func TestKubernetesExample(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	require.Len(t, all, 6)
	flags := map[string]map[string]bool{
		"Deployment reprise-worker":        flagsOf(t, "docs/reference/worker.md", "#", ""),
		"Deployment reprise-worker-v0.2.0": flagsOf(t, "docs/reference/worker.md", "#", ""),
		"Deployment reprise-serve":         flagsOf(t, "docs/reference/commands.md", "## starter serve\n", "\n## "),
	}
	for name, known := range flags {
		object := all[name]
		spec := object.Spec.Template.Spec
		require.Equal(t, map[string]any{"matchLabels": toAny(object.Spec.Template.Metadata.Labels)}, object.Spec.Selector, name)
		require.GreaterOrEqual(t, spec.Grace, 20, name)
		require.True(t, spec.Security.RunAsNonRoot, name)
		container := spec.Containers[0]
		require.NotEmpty(t, container.Resources.Limits["memory"], name)
		for _, arg := range container.Args {
			if flag, is := strings.CutPrefix(arg, "--"); is {
				require.True(t, known[flag], "%s: no flag %s", name, arg)
			}
		}
		for _, env := range container.Env {
			if secret := env.ValueFrom.Secret; secret.Name != "" {
				require.Contains(t, all["Secret "+secret.Name].StringData, secret.Key, name)
			}
		}
		for _, from := range container.EnvFrom {
			require.NotEmpty(t, all["ConfigMap "+from.Config.Name].Data, name)
		}
		ports := lists.Map(container.Ports, func(port struct{ Name string }) string { return port.Name })
		for _, port := range []string{container.Liveness.Get.Port + container.Liveness.Socket.Port, container.Readiness.Get.Port} {
			require.Contains(t, ports, port, "%s: a probe reads a port that there is", name)
		}
		checkMounts(t, all, name, spec)
	}
	service := all["Service reprise-serve"]
	require.Equal(t, toAny(all["Deployment reprise-serve"].Spec.Template.Metadata.Labels), service.Spec.Selector)
	require.Equal(t, "http", service.Spec.Ports[0].TargetPort)
}

// checkMounts: each mount has its volume, and each file of a secret its key and an argument or a
// variable that names it.
func checkMounts(t *testing.T, all map[string]deployed, name string, spec pod) {
	t.Helper()
	args := strings.Join(append(slices.Clone(spec.Containers[0].Args), slices.Collect(maps.Values(all["ConfigMap reprise"].Data))...), " ")
	folders := map[string]string{}
	for _, mount := range spec.Containers[0].Mounts {
		folders[mount.Name] = mount.Path
	}
	require.Len(t, spec.Volumes, len(folders), name)
	for _, volume := range spec.Volumes {
		require.Contains(t, folders, volume.Name, name)
		for _, item := range volume.Secret.Items {
			require.Contains(t, all["Secret "+volume.Secret.Name].StringData, item.Key, name)
			require.Contains(t, args, path.Join(folders[volume.Name], item.Path), name)
		}
	}
}

func toAny(labels map[string]string) map[string]any {
	all := map[string]any{}
	for name, value := range labels {
		all[name] = value
	}
	return all
}

// TestSystemdUnit: the unit reads the files that the page installs, and its variables are known. systemd finds nothing
// wrong with it, and rates what it may do at most 3.7 of 10.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	const name = "reprise-worker@.service"
	unit, page := read(t, "deploy/systemd/"+name), read(t, "docs/how-to/deploy.md")
	for _, setting := range []string{"ExecStart=/usr/local/bin/worker", "TimeoutStopSec=30", "EnvironmentFile=/etc/reprise/%i.env", "DynamicUser=yes"} {
		require.Contains(t, unit, setting+"\n")
	}
	for _, credential := range []string{"connections.yaml:/etc/reprise/%i.yaml", "secret-key:/etc/reprise/%i.key"} {
		file, from, _ := strings.Cut(credential, ":")
		require.Contains(t, unit, "LoadCredential="+credential+"\n")
		require.Contains(t, unit, "=%d/"+file)
		require.Contains(t, page, strings.ReplaceAll(from, "%i", "clinic"), "the page installs it")
	}
	require.Contains(t, page, "/etc/systemd/system/")
	known := read(t, "docs/reference/configuration.md")
	for line := range strings.Lines(read(t, "deploy/systemd/worker.env")) {
		name, _, is := strings.Cut(line, "=")
		if is && strings.HasPrefix(name, "REPRISE_") {
			require.Contains(t, known, "`"+name+"`", "worker.env")
		}
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	folder := t.TempDir()
	installed := filepath.Join(folder, strings.Replace(name, "@", "@clinic", 1))
	unit = strings.ReplaceAll(unit, "/usr/local/bin/worker", os.Args[0]) // which has to be there and executable
	require.NoError(t, os.WriteFile(installed, []byte(unit), 0o600))
	said, err := exec.Command("systemd-analyze", "verify", "--man=no", installed).CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.NotContains(t, string(said), "reprise-worker", "it warns")
	said, err = exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=37", "--no-pager", installed).CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Regexp(t, `Overall exposure level for reprise-worker@clinic\.service: [0-3]\.\d`, string(said))
}

// equalVariable is a variable that has to be the same in several programs, in the first column of the page's table.
var equalVariable = regexp.MustCompile("`(REPRISE_[A-Z_]+)`")

// TestVariablesThatHaveToBeEqual: the examples have each variable that the page says has to be equal everywhere, so that
// whoever copies them is reminded of it.
func TestVariablesThatHaveToBeEqual(t *testing.T) {
	t.Parallel()
	_, section, found := strings.Cut(read(t, "docs/how-to/deploy.md"), "## Equal everywhere\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	unit, all := read(t, "deploy/systemd/worker.env")+read(t, "deploy/systemd/reprise-worker@.service"), manifests(t)
	files := []string{"REPRISE_CONNECTIONS", "REPRISE_RATE_LIMITS", "REPRISE_PLAYBOOKS", "REPRISE_DIRECTORY"} // mounted in pods
	count := 0
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, match := range equalVariable.FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
			name := match[1]
			count++
			require.Contains(t, unit, name+"=", "worker.env")
			if !slices.Contains(files, name) {
				require.Contains(t, all["ConfigMap reprise"].Data, name, "kubernetes.yaml")
			}
		}
	}
	require.Greater(t, count, 8)
}
