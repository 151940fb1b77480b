// Package s3 contains the kind of S3 buckets, from which machines load Ignition data.
package s3
