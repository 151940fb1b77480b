// Package configs has example manifests. Each is an example for users, a flavor
// of "clusterawsadm cluster generate", and a test case.
package configs

import "embed"

// Manifests are the example manifests, by file name.
//
//go:embed *.yaml
var Manifests embed.FS
