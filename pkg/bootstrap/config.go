// Package bootstrap converts an AWSIAMConfiguration to a CloudFormation template with the
// IAM roles, policies and instance profiles that Cluster API Provider AWS needs in an
// account. It does not call AWS.
//
// A file has the same meaning as for upstream's clusterawsadm, because this package uses
// its API types, defaults and conversion. Fields that upstream silently ignores are
// reported in Config.Warnings.
package bootstrap

import (
	bootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/cmd/clusterawsadm/api/bootstrap/v1beta1"

	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Config is an AWSIAMConfiguration in its newest version, with defaults.
type Config struct {
	Spec bootstrapv1.AWSIAMConfigurationSpec

	// Warnings lists, in the order of the file, fields that have no effect and values
	// that AWS will reject.
	Warnings []input.Problem

	lines lines
}

// Default returns the configuration without a file.
func Default() *Config {
	c := &Config{}
	object := bootstrapv1.AWSIAMConfiguration{}
	bootstrapv1.SetObjectDefaults_AWSIAMConfiguration(&object)
	c.Spec = object.Spec
	return c
}

// At returns the position of a field ("spec.stackName") in the file, or of its nearest
// parent that is set. If there is no file, it is the zero Position.
func (c *Config) At(path string) input.Position { return c.lines.at(path) }

// name returns the name of a role, policy or instance profile. The suffix includes its
// dot.
func (c *Config) name(of string) string {
	suffix := ""
	if c.Spec.NameSuffix != nil {
		suffix = *c.Spec.NameSuffix
	}
	return c.Spec.NamePrefix + of + suffix
}
