// Package option replaces the package of google.golang.org/api that the server's Google Cloud Storage archiver
// imports.
package option

import "golang.org/x/oauth2"

// ClientOption has no effect.
type ClientOption struct{}

// WithTokenSource returns an option without effect, because there is no client.
func WithTokenSource(oauth2.TokenSource) ClientOption { return ClientOption{} }
