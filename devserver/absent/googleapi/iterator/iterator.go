// Package iterator holds what the archiver to Google Cloud Storage needs of it.
package iterator

import "errors"

// Done says that there is no more.
var Done = errors.New("no more items in iterator")
