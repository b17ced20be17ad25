// Package option holds what the archiver to Google Cloud Storage needs of it.
package option

import "golang.org/x/oauth2"

// ClientOption chooses nothing.
type ClientOption struct{}

// WithTokenSource is not used: there is no client.
func WithTokenSource(oauth2.TokenSource) ClientOption { return ClientOption{} }
