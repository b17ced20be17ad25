// Command images writes container images of the programs as OCI layouts, for linux on amd64 and arm64. It needs Go
// and no container engine. Builds are reproducible: the same commit yields the same bytes, because times are the
// commit's, certificates come from a pinned module, and time zones from the Go distribution.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// user is the ID of the user that programs run as; no user of the host has it.
const user = 10001

// source is the checkout that images are built from.
type source struct {
	root   string // of the repository
	commit string
	at     time.Time // when it was committed
}

func main() {
	root := flag.String("source", "..", "folder of the repository")
	to := flag.String("to", "dist/images", "folder for the layouts, one for each program")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := writeImages(ctx, *root, *to)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// writeImages writes a layout for each program, with an index of its images.
func writeImages(ctx context.Context, root, to string) error {
	from, err := readSource(ctx, root)
	if err != nil {
		return err
	}
	for _, program := range []string{"worker", "starter"} {
		index, err := from.buildIndex(ctx, program, "amd64", "arm64")
		if err != nil {
			return err
		}
		folder := filepath.Join(to, program)
		digest, err := writeLayout(folder, index)
		if err != nil {
			return fmt.Errorf("write %s: %w", folder, err)
		}
		fmt.Printf("%s %s\n", folder, digest)
	}
	return nil
}

// writeLayout replaces a folder with the OCI layout of an index, and returns the index's digest.
func writeLayout(folder string, index v1.ImageIndex) (v1.Hash, error) {
	if err := os.RemoveAll(folder); err != nil {
		return v1.Hash{}, err
	}
	if _, err := layout.Write(folder, index); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// readSource returns the checkout at root and its commit. A checkout with uncommitted changes is an error, because
// the image would name a commit that it was not built from.
func readSource(ctx context.Context, root string) (*source, error) {
	changes, err := commandOutput(ctx, root, nil, "git", "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changes != "" {
		return nil, fmt.Errorf("the checkout has changes, so that its images would not be those of a commit:\n%s", changes)
	}
	commit, err := commandOutput(ctx, root, nil, "git", "log", "-1", "--format=%H %cI")
	if err != nil {
		return nil, err
	}
	hash, date, _ := strings.Cut(commit, " ")
	at, err := time.Parse(time.RFC3339, date)
	return &source{root: root, commit: hash, at: at.UTC()}, err
}

// buildIndex builds a program for each linux architecture and returns the index of its images.
func (s *source) buildIndex(ctx context.Context, program string, architectures ...string) (v1.ImageIndex, error) {
	index := v1.ImageIndex(empty.Index)
	for _, architecture := range architectures {
		image, err := s.buildImage(ctx, program, architecture)
		if err != nil {
			return nil, fmt.Errorf("%s for %s: %w", program, architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return index, nil
}

// buildImage builds a program for an architecture and returns an image with the binary and the files that it needs.
func (s *source) buildImage(ctx context.Context, program, architecture string) (v1.Image, error) {
	binary, err := s.compileProgram(ctx, program, architecture)
	if err != nil {
		return nil, err
	}
	layers, err := s.layersOf(ctx, program, binary)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", architecture, v1.Time{Time: s.at}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), WorkingDir: home, Entrypoint: []string{"/usr/local/bin/" + program},
		Env: []string{"PATH=/usr/local/bin", "HOME=" + home},
		Labels: map[string]string{
			"org.opencontainers.image.title": "reprise-" + program, "org.opencontainers.image.revision": s.commit,
		},
	}
	return mutate.ConfigFile(image, config)
}

// compileProgram builds a program without cgo, so that it depends on no shared library.
func (s *source) compileProgram(ctx context.Context, program, architecture string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "images-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary := filepath.Join(folder, program)
	_, err = commandOutput(ctx, s.root, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + architecture, "GOFLAGS="}, "go", "build", "-tags", "allclouds", "-trimpath",
		"-buildvcs=false", "-ldflags", "-s -w -buildid= -X reprise/internal/base/build.commit="+s.commit, "-o", binary, "./"+program)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(binary)
}

// commandOutput runs a command and returns its standard output without surrounding space.
func commandOutput(ctx context.Context, folder string, environment []string, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env, command.Stderr = folder, append(os.Environ(), environment...), os.Stderr
	printed, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return strings.TrimSpace(string(printed)), nil
}
