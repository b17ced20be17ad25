// Package repo_test checks the files around the code, which no compiler reads:
// containers, Makefile and documents.
package repo_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// root is the top of the repository, seen from this package.
const root = "../../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

// pinned is an image with a version, or one that compose builds itself.
var pinned = regexp.MustCompile(`^[a-z0-9./-]+:(\d+\.\d+(\.\d+)?(-[a-z0-9.]+)?|local)$`)

type composeFile struct {
	Services map[string]service        `yaml:"services"`
	Configs  map[string]map[string]any `yaml:"configs"`
	Volumes  map[string]any            `yaml:"volumes"`
}

type service struct {
	Image       string         `yaml:"image"`
	Build       map[string]any `yaml:"build"`
	Ports       []string       `yaml:"ports"`
	NetworkMode string         `yaml:"network_mode"`
	Volumes     []string       `yaml:"volumes"`
	Configs     []struct {
		Source string `yaml:"source"`
	} `yaml:"configs"`
	Healthcheck struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
	DependsOn map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Environment map[string]string `yaml:"environment"`
}

func compose(t *testing.T) composeFile {
	t.Helper()
	var file composeFile
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "docker-compose.yml")), &file))
	require.NotEmpty(t, file.Services)
	return file
}

func TestComposeImagesArePinned(t *testing.T) {
	t.Parallel()
	for name, s := range compose(t).Services {
		require.Regexp(t, pinned, s.Image, name)
		require.Equal(t, strings.HasSuffix(s.Image, ":local"), s.Build != nil,
			"%s: an image is either built here, and called local, or pulled", name)
	}
}

func TestComposePublishesOnThisMachineOnly(t *testing.T) {
	t.Parallel()
	published := 0
	for name, s := range compose(t).Services {
		require.Empty(t, s.NetworkMode, "%s would get past the port bindings", name)
		for _, port := range s.Ports {
			parts := strings.Split(port, ":")
			require.Len(t, parts, 3, "%s: %s names no address, which means all of them", name, port)
			address, err := netip.ParseAddr(parts[0])
			require.NoError(t, err, name)
			require.True(t, address.IsLoopback(), "%s: %s", name, port)
			published++
		}
	}
	require.NotZero(t, published)
}

// TestComposeServicesAreWaitedFor wants a health check wherever a service keeps
// running, and every dependency to wait for health or for the end of a job.
func TestComposeServicesAreWaitedFor(t *testing.T) {
	t.Parallel()
	services := compose(t).Services
	jobs := map[string]bool{}
	for name, s := range services {
		for dependency, how := range s.DependsOn {
			require.Contains(t, services, dependency, name)
			switch how.Condition {
			case "service_completed_successfully":
				jobs[dependency] = true
			case "service_healthy":
				require.NotEmpty(t, services[dependency].Healthcheck.Test, "%s waits for the health of %s", name, dependency)
			default:
				require.Fail(t, "unknown condition", "%s waits for %s to be %q", name, dependency, how.Condition)
			}
		}
	}
	for name, s := range services {
		require.NotEqual(t, jobs[name], len(s.Healthcheck.Test) > 0,
			"%s: a service has a health check, a job that ends has none", name)
	}
}

func TestComposeNamesResolve(t *testing.T) {
	t.Parallel()
	file := compose(t)
	for name, s := range file.Services {
		for _, config := range s.Configs {
			require.Contains(t, file.Configs, config.Source, name)
		}
		for _, volume := range s.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			require.Contains(t, file.Volumes, source, name)
		}
	}
	require.Equal(t, "temporal:7233", file.Services["worker"].Environment["TEMPORAL_ADDRESS"])
	require.Contains(t, file.Services, "temporal")
	require.Contains(t, file.Services["worker"].Environment["REPRISE_AUTH_PG_MAIN"], "@postgres:5432/")
	require.Contains(t, file.Services, "postgres")
	for name, config := range file.Configs {
		var settings map[string]any
		content, _ := config["content"].(string)
		require.NoError(t, yaml.Unmarshal([]byte(content), &settings), name)
		require.NotEmpty(t, settings, name)
	}
}

// TestComposeTemporalVersionsAgree keeps the schema tool at the version of the
// server it prepares the database for.
func TestComposeTemporalVersionsAgree(t *testing.T) {
	t.Parallel()
	versions := map[string]bool{}
	for _, s := range compose(t).Services {
		image, tag, _ := strings.Cut(s.Image, ":")
		if image == "temporalio/server" || image == "temporalio/admin-tools" {
			versions[tag] = true
		}
	}
	require.Len(t, versions, 1)
}

var fromLine = regexp.MustCompile(`(?m)^FROM (\S+)(?: AS (\S+))?$`)

func TestDockerfile(t *testing.T) {
	t.Parallel()
	text := read(t, "Dockerfile")
	stages := map[string]bool{}
	for _, match := range fromLine.FindAllStringSubmatch(text, -1) {
		if !stages[match[1]] {
			require.Regexp(t, pinned, match[1])
		}
		stages[match[2]] = true
	}
	require.Subset(t, keys(stages), []string{"build", "worker", "starter"})
	target, _ := compose(t).Services["worker"].Build["target"].(string)
	require.True(t, stages[target], "docker-compose.yml builds target %q", target)

	users := regexp.MustCompile(`(?m)^USER (\S+)$`).FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, users)
	require.Equal(t, "reprise", users[len(users)-1][1], "the last image does not run as root")

	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))
	require.NotNil(t, version)
	require.Contains(t, text, "FROM golang:"+version[1]+".", "the image compiles with the Go version of go.mod")
}

func keys(m map[string]bool) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	return names
}
