package eks

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/xeipuuv/gojsonschema"
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
		"configuration: EKS refuses it for %s %s: %s. 'aws eks describe-addon-configuration --addon-name %[1]s --addon-version %[2]s' shows what it may contain",
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
	schema   *gojsonschema.Schema // of its configuration; nil if this program cannot read it
	accounts []string             // service accounts for which it takes pod identity associations
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
func compile(text string) *gojsonschema.Schema {
	var document any
	if err := json.Unmarshal([]byte(text), &document); err != nil || !readable(document) {
		return nil
	}
	schema, err := gojsonschema.NewSchema(gojsonschema.NewGoLoader(document))
	if err != nil {
		return nil
	}
	return schema
}

// readable prepares a schema for the library, and reports whether the library can read it. It cannot if the schema refers to another document,
// which the library would fetch. Formats, and regular expressions that Go does not support, are removed: EKS may judge them differently.
func readable(schema any) bool {
	ok := true
	switch x := schema.(type) {
	case map[string]any:
		if ref, is := x["$ref"].(string); is && !strings.HasPrefix(ref, "#") {
			return false
		}
		if pattern, is := x["pattern"].(string); is && !isRegexp(pattern) {
			delete(x, "pattern")
		}
		if _, is := x["format"].(string); is {
			delete(x, "format")
		}
		for _, value := range x {
			ok = readable(value) && ok
		}
	case []any:
		for _, value := range x {
			ok = readable(value) && ok
		}
	}
	return ok
}

func isRegexp(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}

// misfits says what in a configuration, which is JSON or YAML, does not fit a schema.
func misfits(schema *gojsonschema.Schema, configuration string) ([]string, error) {
	raw, err := yaml.YAMLToJSON([]byte(configuration))
	if err != nil {
		return []string{"it is neither JSON nor YAML"}, nil //nolint:nilerr // that is the answer
	}
	result, err := schema.Validate(gojsonschema.NewBytesLoader(raw))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range result.Errors() {
		switch e.(type) {
		case *gojsonschema.NumberAnyOfError, *gojsonschema.NumberOneOfError, *gojsonschema.NumberAllOfError, *gojsonschema.ConditionThenError,
			*gojsonschema.ConditionElseError: // the reasons of the best alternative are errors of their own
			if len(result.Errors()) > 1 {
				continue
			}
		}
		at, what := strings.TrimPrefix(strings.TrimPrefix(e.Context().String(), "(root)"), "."), e.Description()
		if at != "" {
			at, what = at+": ", strings.TrimPrefix(what, at[strings.LastIndexByte(at, '.')+1:]+" ")
		}
		all = append(all, at+what)
	}
	slices.Sort(all) // the library goes through mappings in any order
	return all, nil
}
