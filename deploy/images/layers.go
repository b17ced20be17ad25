package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// home is the home folder of the user that programs run as, and their working directory.
const home = "/home/reprise"

// file is a file of an image; a name that ends in a slash is a folder.
type file struct {
	name string // without a slash before it
	data []byte
	mode int64
	own  bool // the file belongs to the user, else to root
}

// layersOf returns the layers of an image: one with the files that all programs share, which rarely changes, and one
// with the program.
func (s *source) layersOf(ctx context.Context, program string, binary []byte) ([]v1.Layer, error) {
	zones, err := timeZoneFiles(ctx)
	if err != nil {
		return nil, err
	}
	shared := append([]file{
		{name: "etc/passwd", data: fmt.Appendf(nil, "root:x:0:0:root:/:/none\nreprise:x:%d:%d:reprise:%s:/none\n", user, user, home), mode: 0o644},
		{name: "etc/group", data: fmt.Appendf(nil, "root:x:0:\nreprise:x:%d:\n", user), mode: 0o644},
		{name: "etc/ssl/certs/ca-certificates.crt", data: rootCertificates(), mode: 0o644},
		{name: strings.TrimPrefix(home, "/") + "/", mode: 0o750, own: true},
		{name: "tmp/", mode: 0o1777},
	}, zones...)
	var layers []v1.Layer
	for _, files := range [][]file{shared, {{name: "usr/local/bin/" + program, data: binary, mode: 0o755}}} {
		packed, err := s.packFiles(files)
		if err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil })
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// packFiles returns an archive of files and their parent folders, sorted by name, with the time of the commit.
func (s *source) packFiles(files []file) ([]byte, error) {
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	for _, f := range withFolders(files) {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: s.at, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if f.own {
			header.Uid, header.Gid = user, user
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return packed.Bytes(), err
}

// withFolders returns files and their parent folders, sorted by name.
func withFolders(files []file) []file {
	all := map[string]file{}
	for _, f := range files {
		all[f.name] = f
	}
	for _, f := range files {
		for at, c := range strings.TrimSuffix(f.name, "/") {
			folder := f.name[:at+1]
			if _, found := all[folder]; c == '/' && !found {
				all[folder] = file{name: folder, mode: 0o755}
			}
		}
	}
	sorted := make([]file, 0, len(all))
	for _, f := range all {
		sorted = append(sorted, f)
	}
	slices.SortFunc(sorted, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return sorted
}

// rootCertificates returns Mozilla's root certificates from a pinned module. It leaves out roots with constraints that a
// PEM file cannot express.
func rootCertificates() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer never fails
		}
	}
	return all.Bytes()
}

// timeZoneFiles returns the files of the Go distribution's time zones.
func timeZoneFiles(ctx context.Context) ([]file, error) {
	root, err := commandOutput(ctx, ".", nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	archive, err := zip.OpenReader(filepath.Join(root, "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, fmt.Errorf("read the time zones of Go: %w", err)
	}
	defer func() { _ = archive.Close() }()
	var zones []file
	for _, zone := range archive.File {
		if strings.HasSuffix(zone.Name, "/") {
			continue
		}
		reader, err := zone.Open()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			return nil, err
		}
		zones = append(zones, file{name: "usr/share/zoneinfo/" + zone.Name, data: data, mode: 0o644})
	}
	return zones, nil
}
