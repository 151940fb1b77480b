package eks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// checkConfiguration compares the configuration of the add-on with the schema that EKS has for a version: CreateAddon and
// UpdateAddon refuse what does not fit ("Determine fields you can customize for Amazon EKS add-ons", EKS user guide). Without
// the permission to read the schema, it is not compared.
func (a *Addon) checkConfiguration(ctx context.Context, c *cloud.Clients, offered []AddonVersion) (refusal string, err error) {
	have, err := a.Find(ctx, c)
	if err != nil || have != nil && a.fits(have) {
		return "", err
	}
	version := a.versionOf(have, offered)
	if version == "" {
		return "", nil
	}
	if refusal, err := a.checkIdentities(ctx, c, version); refusal != "" || err != nil || a.Configuration == "" {
		return refusal, err
	}
	offers, err := describeConfiguration(ctx, c, a.Name, version)
	if cloud.Denied(err) {
		return "", nil
	}
	if err != nil || offers.schema == nil {
		return "", err
	}
	problems, err := misfits(offers.schema, a.Configuration)
	if err != nil || len(problems) == 0 {
		return "", err
	}
	return fmt.Sprintf(
		"EKS refuses the configuration of %s %s: %s. 'aws eks describe-addon-configuration --addon-name %[1]s --addon-version %[2]s' shows what it may contain",
		a.Name,
		version,
		strings.Join(problems, "; "),
	), nil
}

// versionOf returns the version that the add-on will have: that of the manifest, the one that it has, or the default.
func (a *Addon) versionOf(have *AddonState, offered []AddonVersion) string {
	if a.Version != "" {
		return a.Version
	}
	if have != nil {
		return have.Version
	}
	for _, v := range offered {
		if v.Default {
			return v.Name
		}
	}
	return ""
}

// fits reports whether EKS has accepted the configuration for the version.
func (a *Addon) fits(have *AddonState) bool {
	return withoutEnd(have.Configuration) == withoutEnd(a.Configuration) && slices.Equal(have.Identities, a.identityLines()) &&
		(a.Version == "" || a.Version == have.Version)
}

// withoutEnd returns a configuration as EKS stores it: without the end of the last line.
func withoutEnd(configuration string) string { return strings.TrimRight(configuration, "\n") }

// addonOffer is what a version of an add-on takes.
type addonOffer struct {
	schema   *jsonschema.Schema // of its configuration; nil if this program cannot read it
	accounts []string           // service accounts for which it takes pod identity associations
}

// describeConfiguration returns what a version of an add-on takes.
func describeConfiguration(ctx context.Context, c *cloud.Clients, addon, version string) (addonOffer, error) {
	return cloud.Remember(ctx, c, "configuration of add-on "+addon+" "+version, func(ctx context.Context) (addonOffer, error) {
		out, err := c.EKS.DescribeAddonConfiguration(ctx, &eks.DescribeAddonConfigurationInput{AddonName: &addon, AddonVersion: &version})
		if err != nil {
			return addonOffer{}, err
		}
		return addonOffer{compile(aws.ToString(out.ConfigurationSchema)), identityAccounts(out)}, nil
	})
}

// compile reads a schema. EKS has schemas of several drafts, which name themselves. A schema that refers to other documents,
// or that the library cannot read, is left to EKS.
func compile(text string) *jsonschema.Schema {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil
	}
	const name = "urn:addon"
	c := jsonschema.NewCompiler()
	c.UseLoader(noDocuments{})
	c.UseRegexpEngine(compilePattern)
	if err := c.AddResource(name, document); err != nil {
		return nil
	}
	schema, err := c.Compile(name)
	if err != nil {
		return nil
	}
	return schema
}

// noDocuments loads nothing.
type noDocuments struct{}

// Load implements jsonschema.URLLoader.
func (noDocuments) Load(string) (any, error) {
	return nil, errors.New("the schema of an add-on cannot refer to other documents")
}

// pattern is a regular expression of a schema. One that Go does not have matches everything.
type pattern struct {
	text string
	*regexp.Regexp
}

func compilePattern(text string) (jsonschema.Regexp, error) {
	r, err := regexp.Compile(text)
	if err != nil {
		r = nil
	}
	return pattern{text, r}, nil
}

// MatchString implements jsonschema.Regexp.
func (p pattern) MatchString(s string) bool { return p.Regexp == nil || p.Regexp.MatchString(s) }

// String implements jsonschema.Regexp.
func (p pattern) String() string { return p.text }

// misfits says what in a configuration, which is JSON or YAML, does not fit a schema.
func misfits(schema *jsonschema.Schema, configuration string) ([]string, error) {
	raw, err := yaml.YAMLToJSON([]byte(configuration))
	if err != nil {
		return []string{"it is neither JSON nor YAML"}, nil //nolint:nilerr // that is the answer
	}
	content, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	var invalid *jsonschema.ValidationError
	switch err := schema.Validate(content); {
	case err == nil:
		return nil, nil
	case errors.As(err, &invalid):
		all := reasons(invalid)
		slices.Sort(all) // the library goes through mappings in any order
		return all, nil
	default:
		return nil, err
	}
}

// reasons lists the reasons of an error, without those that only lead to others. Of alternatives, it takes the one that fits
// best: whose reason is deepest in the configuration.
func reasons(e *jsonschema.ValidationError) (all []string) {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		var best *jsonschema.ValidationError
		for _, cause := range e.Causes {
			if best == nil || depth(cause) > depth(best) {
				best = cause
			}
		}
		if best != nil {
			return reasons(best)
		}
	}
	for _, cause := range e.Causes {
		all = append(all, reasons(cause)...)
	}
	if len(all) == 0 {
		at := strings.Join(e.InstanceLocation, ".")
		if at != "" {
			at += ": "
		}
		all = []string{at + e.ErrorKind.LocalizedString(message.NewPrinter(language.English))}
	}
	return all
}

// depth returns how deep in the configuration the reasons of an error are.
func depth(e *jsonschema.ValidationError) int {
	deepest := len(e.InstanceLocation)
	for _, cause := range e.Causes {
		deepest = max(deepest, depth(cause))
	}
	return deepest
}
