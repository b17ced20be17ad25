// Package cloud lets payload stores be in S3, Google Cloud Storage and Azure
// Blob Storage. Only the programs import it: the libraries of the clouds
// nearly double the size of a binary.
package cloud

import (
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
)
