// Package bootstrap makes of an AWSIAMConfiguration the CloudFormation template
// with the roles, policies and instance profiles that Cluster API Provider AWS
// needs in an account. It talks to nobody.
//
// What a file means is what it means to Cluster API Provider AWS's own
// clusterawsadm: the API types, their defaults and their conversion are its
// own. What it silently ignores is told here, as Warnings.
package bootstrap

import (
	bootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/cmd/clusterawsadm/api/bootstrap/v1beta1"

	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Config is an AWSIAMConfiguration in its newest version, after defaulting.
type Config struct {
	Spec bootstrapv1.AWSIAMConfigurationSpec

	// Warnings are remarks in the order of the file: what has no effect, and
	// what AWS will refuse.
	Warnings []input.Problem

	lines lines
}

// Default is what an absent file means.
func Default() *Config {
	c := &Config{}
	object := bootstrapv1.AWSIAMConfiguration{}
	bootstrapv1.SetObjectDefaults_AWSIAMConfiguration(&object)
	c.Spec = object.Spec
	return c
}

// At is the place of a field of the file ("spec.stackName"), or of the nearest
// field above it. It is the zero Position for what is not from a file.
func (c *Config) At(path string) input.Position { return c.lines.at(path) }

// name is the name of a role, policy or instance profile. The suffix brings
// its own dot.
func (c *Config) name(of string) string {
	suffix := ""
	if c.Spec.NameSuffix != nil {
		suffix = *c.Spec.NameSuffix
	}
	return c.Spec.NamePrefix + of + suffix
}
