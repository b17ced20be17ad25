// Package iterator replaces the package of google.golang.org/api that the server's Google Cloud Storage archiver
// imports.
package iterator

import "errors"

// Done is the error of an iterator without further items.
var Done = errors.New("no more items in iterator")
