// Package cloud registers the drivers for payload stores in S3 and, in builds with the tag allclouds, in Google Cloud
// Storage and Azure Blob Storage. Only the programs import it: the libraries of the three clouds nearly double what
// has to be compiled.
package cloud

import _ "gocloud.dev/blob/s3blob" // s3://
