// Package configs has example manifests. Each is an example for users, a flavor
// of "clusterawsadm cluster generate", and a test case.
package configs

import "embed"

// Manifests are the example manifests, by file name.
//
//go:embed *.yaml
var Manifests embed.FS

// Addons are the documents that "clusterawsadm cluster generate" appends to a flavor, by file name.
// A word such as <cluster> stands for a value of the manifest.
//
//go:embed addons/*.yaml
var Addons embed.FS
