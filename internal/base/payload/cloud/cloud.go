// Package cloud lets payload stores be in S3 and, in a build with the tag
// allclouds, in Google Cloud Storage and Azure Blob Storage as well. Only the
// programs import it: the libraries of the three clouds together nearly double
// what there is to compile.
package cloud

import _ "gocloud.dev/blob/s3blob" // s3://
