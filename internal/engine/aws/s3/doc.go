// Package s3 holds the bucket from which machines load their Ignition
// configuration.
package s3
