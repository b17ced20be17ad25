// Package bucket opens folders and object stores by their addresses, for the payload store and for files of a
// connection. A value is written completely or not at all.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // file://
)

// FileScheme starts the addresses of folders.
const FileScheme = "file://"

// Location is the parsed address of a folder, or of a prefix in a bucket.
type Location struct {
	What   string // it is called in errors, such as the payload store
	Target string // the URL that is opened; its options may be secret
	Name   string // the address without options, for messages
	Prefix string // of the keys in a bucket; "" for none, else it ends in a slash
}

// Parse parses an address such as file:///var/lib/lake, s3://bucket/folder?region=eu-central-1, gs://bucket or
// azblob://container. what names the store in errors, and options are defaults for addresses of folders. Cloud
// drivers would ignore a path, so it becomes the prefix.
func Parse(address, what string, options map[string]string) (Location, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme == "" || !strings.HasPrefix(address[len(parsed.Scheme):], "://") {
		return Location{}, fmt.Errorf("%s: %s", what, examples) // the address may hold a secret
	}
	if parsed.User != nil {
		return Location{}, fmt.Errorf("%s: its address must not contain credentials; configure them the way the cloud provider's tools expect", what)
	}
	at := Location{What: what, Name: (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}).String()}
	switch parsed.Scheme {
	case "file":
		// A value is written to a temporary file next to its place, then renamed.
		SetDefaults(parsed, map[string]string{"no_tmp_dir": "true", "metadata": "skip"})
		SetDefaults(parsed, options)
		at.Target = parsed.String()
		return at, nil
	case "s3": // what is read is compared with hashes of its own, and not every server sends a checksum
		SetDefaults(parsed, map[string]string{"response_checksum_validation": "when_required"})
	}
	if at.Prefix = strings.Trim(parsed.Path, "/"); at.Prefix != "" {
		at.Prefix += "/"
	}
	parsed.Path, parsed.RawPath = "", ""
	at.Target = parsed.String()
	return at, nil
}

// examples are shown in errors.
const examples = "expected an address such as file:///var/lib/reprise/payloads, s3://bucket, gs://bucket or azblob://container"

// SetDefaults adds the options that the address lacks.
func SetDefaults(address *url.URL, options map[string]string) {
	query := address.Query()
	for option, value := range options {
		if !query.Has(option) {
			query.Set(option, value)
		}
	}
	address.RawQuery = query.Encode()
}

// IsFolder reports whether the location is a folder.
func (l Location) IsFolder() bool { return strings.HasPrefix(l.Target, FileScheme) }

// Open opens the location without contacting a cloud. Cloud schemes need package payload/cloud.
func (l Location) Open(ctx context.Context) (*blob.Bucket, error) {
	opened, err := blob.OpenBucket(ctx, l.Target)
	if err != nil {
		return nil, l.OpenError(err)
	}
	if l.Prefix != "" {
		opened = blob.PrefixedBucket(opened, l.Prefix)
	}
	return opened, nil
}

// OpenError returns an error that names the location. err may quote the whole address, so its options are removed.
func (l Location) OpenError(err error) error {
	scheme, _, _ := strings.Cut(l.Name, ":")
	if strings.Contains(err.Error(), "no driver registered") {
		if scheme == "gs" || scheme == "azblob" {
			return fmt.Errorf("open %s %s: this program was built without support for it; build with -tags allclouds, "+
				"as the container images are, or use s3:// or file://", l.What, l.Name)
		}
		return fmt.Errorf("open %s %s: unknown scheme %q; %s", l.What, l.Name, scheme, examples)
	}
	_, query, _ := strings.Cut(l.Target, "?")
	if query == "" || !strings.Contains(err.Error(), query) {
		return fmt.Errorf("open %s %s: %w", l.What, l.Name, err)
	}
	return fmt.Errorf("open %s %s: %w", l.What, l.Name, errors.New(strings.ReplaceAll(err.Error(), "?"+query, "")))
}
