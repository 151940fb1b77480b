// Package configs holds manifests to start from. Each is an example, a flavour
// of "clusterawsadm cluster generate", and a test case.
package configs

import "embed"

// Manifests are the example manifests, by file name.
//
//go:embed *.yaml
var Manifests embed.FS
