package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/stretchr/testify/require"
)

// TestImageOfTheWorker: the same commit has the same bytes, the image runs as a user without rights, and the worker in it
// knows its commit, finds certificates and time zones, and needs nothing else.
func TestImageOfTheWorker(t *testing.T) {
	root := filepath.Join("..", "..")
	commit, err := commandOutput(t.Context(), root, nil, "git", "log", "-1", "--format=%H")
	require.NoError(t, err)
	from := &source{root: root, commit: commit}
	first, err := from.buildImage(t.Context(), "worker", runtime.GOARCH)
	require.NoError(t, err)
	digest, err := first.Digest()
	require.NoError(t, err)
	index, err := from.buildIndex(t.Context(), "worker", runtime.GOARCH)
	require.NoError(t, err)
	written := filepath.Join(t.TempDir(), "layout")
	_, err = writeLayout(written, index)
	require.NoError(t, err)
	read, err := layout.ImageIndexFromPath(written)
	require.NoError(t, err)
	manifest, err := read.IndexManifest()
	require.NoError(t, err)
	require.Equal(t, digest, manifest.Manifests[0].Digest, "built again, and read from the layout")
	require.Equal(t, runtime.GOARCH, manifest.Manifests[0].Platform.Architecture)
	config, err := first.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, "10001:10001", config.Config.User)
	require.Equal(t, commit, config.Config.Labels["org.opencontainers.image.revision"])
	folder := t.TempDir()
	require.NoError(t, os.Chmod(folder, 0o755))
	unpack(t, first, folder)
	for _, name := range []string{"etc/ssl/certs/ca-certificates.crt", "usr/share/zoneinfo/Europe/Berlin"} {
		info, err := os.Stat(filepath.Join(folder, name))
		require.NoError(t, err)
		require.Positive(t, info.Size(), name)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may change the root folder of a process")
	}
	command := exec.Command("/usr/local/bin/worker", "--version")
	command.Path, command.Err, command.Dir, command.Env = "/usr/local/bin/worker", nil, home, config.Config.Env
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: folder, Credential: &syscall.Credential{Uid: user, Gid: user}}
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "commit "+commit)
}

// unpack writes the files of an image to a folder.
func unpack(t *testing.T, image v1.Image, folder string) {
	t.Helper()
	flat := mutate.Extract(image)
	defer func() { _ = flat.Close() }()
	for archive := tar.NewReader(flat); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		name := filepath.Join(folder, header.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		if header.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(name, 0o755))
		} else {
			data, err := io.ReadAll(archive)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(name, data, os.FileMode(header.Mode)))
		}
		if os.Geteuid() == 0 {
			require.NoError(t, os.Chown(name, header.Uid, header.Gid))
		}
	}
}
