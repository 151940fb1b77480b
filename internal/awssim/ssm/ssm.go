package ssm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// State is the state of Systems Manager.
type State struct {
	Parameters map[string]*Parameter // by name
	Deleted    map[string]time.Time  `json:",omitempty"` // by name: when the parameter was deleted
	Agents     map[string]*Agent     `json:",omitempty"` // by instance
	Commands   map[string]*Command   `json:",omitempty"` // by ID
	Sessions   map[string]string     `json:",omitempty"` // by ID: the instance
}

// Parameter is a parameter.
type Parameter struct {
	Name, Value, Type string
	Key               string // ID of the KMS key; "" is aws/ssm
	Version           int64
	History           []string // the values of earlier versions, the last one at the end
	Created, Modified time.Time
	Tags              map[string]string
	// Withheld is true for the copy of a parameter of another account, which lacks its value.
	Withheld bool `json:",omitempty"`
}

func (svc *Service) simulate() {
	core.On(svc.Account, svc.putParameter, "Name", "Value", "Type", "Overwrite", "Tags", "Description", "Tier", "KeyId")
	core.On(svc.Account, svc.getParameter, "Name", "WithDecryption")
	core.On(svc.Account, svc.getParameters, "Names", "WithDecryption")
	core.On(svc.Account, svc.getParametersByPath, "Path", "Recursive", "WithDecryption", "NextToken", "MaxResults")
	core.On(svc.Account, svc.describeParameters, "ParameterFilters", "NextToken", "MaxResults")
	core.On(svc.Account, svc.deleteParameter, "Name")
	core.On(svc.Account, svc.deleteParameters, "Names")
}

// reuse is how long the name of a deleted parameter should not be used again ("wait for at
// least 30 seconds to create a parameter with the same name", DeleteParameter). What AWS
// answers before is not documented: an account with a lag refuses it.
const reuse = 30 * time.Second

// versions is how many versions of a parameter are kept ("Working with parameter versions").
const versions = 100

func (svc *Service) putParameter(in *ssm.PutParameterInput) (*ssm.PutParameterOutput, error) {
	name := aws.ToString(in.Name)
	if strings.HasPrefix(name, "/aws") || strings.HasPrefix(name, "/ssm") {
		return nil, core.Fail("ValidationException", "parameter names may not begin with %q", name[:4])
	}
	if strings.Count(name, "/") > 16 || len(name) > 1011 {
		return nil, core.Fail("ValidationException", "the parameter name %s is too long or too deep", name)
	}
	most, tier := 4096, "standard"
	if in.Tier == types.ParameterTierAdvanced {
		most, tier = 8192, "advanced"
	}
	if len(aws.ToString(in.Value)) > most || aws.ToString(in.Value) == "" {
		return nil, core.Fail("ValidationException", "%s tier parameters hold 1 to %d characters", tier, most)
	}
	if in.KeyId != nil && in.Type != types.ParameterTypeSecureString {
		return nil, core.Fail("ValidationException", "KeyId is only for parameters of type SecureString")
	}
	if in.KeyId != nil { // "InvalidKeyId", PutParameter
		if err := svc.Usable(*in.KeyId); err != nil {
			return nil, core.Fail("InvalidKeyId", "%s", err)
		}
	}
	p, exists := svc.state.Parameters[name]
	switch {
	case exists && !aws.ToBool(in.Overwrite):
		return nil, core.Fail("ParameterAlreadyExists", "the parameter already exists")
	case !exists && svc.Lag > 0 && svc.Now().Sub(svc.state.Deleted[name]) < reuse:
		return nil, core.Fail("ParameterAlreadyExists", "the parameter was deleted less than %s ago", reuse)
	case exists && len(in.Tags) > 0:
		return nil, core.Fail("ValidationException", "tags and overwrite cannot be used together")
	case !exists:
		p = &Parameter{Name: name, Created: svc.Now(), Tags: map[string]string{}}
		svc.state.Parameters[name] = p
	}
	for _, t := range in.Tags {
		p.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	if exists {
		p.History = append(p.History, p.Value)
		p.History = p.History[max(0, len(p.History)-versions+1):]
	}
	p.Withheld = false
	p.Value, p.Type, p.Key, p.Modified = aws.ToString(in.Value), string(in.Type), aws.ToString(in.KeyId), svc.Now()
	p.Version++
	return &ssm.PutParameterOutput{Version: p.Version}, nil
}

func (p *Parameter) out() types.Parameter {
	value := p.Value
	if p.Withheld {
		value = standIn(p.Name)
	}
	return types.Parameter{
		Name: aws.String(p.Name), Value: aws.String(value), Type: types.ParameterType(p.Type),
		Version: p.Version, LastModifiedDate: aws.Time(p.Modified),
	}
}

func (svc *Service) getParameter(in *ssm.GetParameterInput) (*ssm.GetParameterOutput, error) {
	name, version, selected := strings.Cut(aws.ToString(in.Name), ":")
	p, ok := svc.stored(name)
	if !ok {
		return nil, core.Fail("ParameterNotFound", "%s", aws.ToString(in.Name))
	}
	out := p.out()
	if selected {
		if !p.at(version, &out) {
			return nil, core.Fail("ParameterVersionNotFound", "Systems Manager could not find version %s of %s. Verify the version and try again.", version, name)
		}
		out.Selector = aws.String(":" + version)
	}
	return &ssm.GetParameterOutput{Parameter: &out}, nil
}

// getParameters lists the names that do not exist ("InvalidParameters", GetParameters). Versions are not simulated here.
func (svc *Service) getParameters(in *ssm.GetParametersInput) (*ssm.GetParametersOutput, error) {
	out := &ssm.GetParametersOutput{}
	for _, name := range in.Names {
		if p, ok := svc.stored(name); ok {
			out.Parameters = append(out.Parameters, p.out())
		} else {
			out.InvalidParameters = append(out.InvalidParameters, name)
		}
	}
	return out, nil
}

func (svc *Service) stored(name string) (*Parameter, bool) {
	p, ok := svc.state.Parameters[name]
	if value, public := svc.Public(name); public && !ok { // a copy of another account has that account's
		p, ok = &Parameter{Name: name, Value: value, Type: string(types.ParameterTypeString), Version: 1, Modified: svc.Now().AddDate(0, -1, 0)}, true
	}
	return p, ok
}

// at sets the value and the version to those of an earlier version.
func (p *Parameter) at(version string, out *types.Parameter) bool {
	n, err := strconv.ParseInt(version, 10, 64)
	if ago := p.Version - n; err != nil || ago < 0 || ago > int64(len(p.History)) {
		return false
	} else if ago > 0 {
		out.Value, out.Version = aws.String(p.History[int64(len(p.History))-ago]), n
	}
	return true
}

func (svc *Service) getParametersByPath(in *ssm.GetParametersByPathInput) (*ssm.GetParametersByPathOutput, error) {
	prefix := strings.TrimSuffix(aws.ToString(in.Path), "/") + "/"
	var found []types.Parameter
	for _, name := range slices.Sorted(maps.Keys(svc.state.Parameters)) {
		rest, below := strings.CutPrefix(name, prefix)
		if below && svc.Visible(svc.state.Parameters[name].Created) && (aws.ToBool(in.Recursive) || !strings.Contains(rest, "/")) {
			found = append(found, svc.state.Parameters[name].out())
		}
	}
	part, next, err := core.Page(svc.Account, found, in.NextToken, in.MaxResults, 10)
	return &ssm.GetParametersByPathOutput{Parameters: part, NextToken: next}, err
}

// describeParameters supports one filter: tag:KEY with option Equals.
func (svc *Service) describeParameters(in *ssm.DescribeParametersInput) (*ssm.DescribeParametersOutput, error) {
	var found []types.ParameterMetadata
	for _, name := range slices.Sorted(maps.Keys(svc.state.Parameters)) {
		p, matches := svc.state.Parameters[name], true
		for _, f := range in.ParameterFilters {
			key, isTag := strings.CutPrefix(aws.ToString(f.Key), "tag:")
			switch {
			case isTag && aws.ToString(f.Option) == "Equals":
				matches = matches && slices.Contains(f.Values, p.Tags[key])
			case key == "Path" && aws.ToString(f.Option) == "Recursive":
				matches = matches && slices.ContainsFunc(f.Values, func(path string) bool { return strings.HasPrefix(p.Name, strings.TrimSuffix(path, "/")+"/") })
			default:
				return nil, core.Fail("ValidationException", "filter %s is not simulated", aws.ToString(f.Key))
			}
		}
		if matches {
			shown := types.ParameterMetadata{
				Name: aws.String(p.Name), Type: types.ParameterType(p.Type), Version: p.Version, LastModifiedDate: aws.Time(p.Modified),
			}
			if shown.Type == types.ParameterTypeSecureString {
				shown.KeyId = aws.String(cmp.Or(p.Key, "alias/aws/ssm"))
			}
			found = append(found, shown)
		}
	}
	part, next, err := core.Page(svc.Account, found, in.NextToken, in.MaxResults, 50)
	return &ssm.DescribeParametersOutput{Parameters: part, NextToken: next}, err
}

func (svc *Service) deleteParameter(in *ssm.DeleteParameterInput) (*ssm.DeleteParameterOutput, error) {
	name := aws.ToString(in.Name)
	if _, ok := svc.state.Parameters[name]; !ok {
		return nil, core.Fail("ParameterNotFound", "%s", name)
	}
	svc.remove(name)
	return &ssm.DeleteParameterOutput{}, nil
}

func (svc *Service) deleteParameters(in *ssm.DeleteParametersInput) (*ssm.DeleteParametersOutput, error) {
	if len(in.Names) > 10 {
		return nil, core.Fail("ValidationException", "at most 10 names")
	}
	out := &ssm.DeleteParametersOutput{}
	for _, name := range in.Names {
		if _, ok := svc.state.Parameters[name]; ok {
			svc.remove(name)
			out.DeletedParameters = append(out.DeletedParameters, name)
		} else {
			out.InvalidParameters = append(out.InvalidParameters, name)
		}
	}
	return out, nil
}

func (svc *Service) remove(name string) {
	delete(svc.state.Parameters, name)
	if svc.state.Deleted == nil {
		svc.state.Deleted = map[string]time.Time{}
	}
	svc.state.Deleted[name] = svc.Now()
}

// Tagged lists the parameters.
func (svc *Service) Tagged() (all []core.Tagged) {
	for name, p := range svc.state.Parameters {
		all = append(all, core.Tagged{ARN: svc.RegionalARN("ssm", "parameter/"+strings.TrimPrefix(name, "/")), Tags: p.Tags, Born: p.Modified})
	}
	return all
}

// Inventory lists the parameters.
func (svc *Service) Inventory() []string {
	return core.Each(core.SortedKeys(svc.state.Parameters), func(name string) string { return "Parameter " + name })
}

// Detailed is Inventory with types and tags.
func (svc *Service) Detailed() (lines []string) {
	for _, p := range svc.state.Parameters {
		lines = append(lines, fmt.Sprintf("Parameter %s: %s; tags %s", p.Name, p.Type, core.Pairs(p.Tags)))
	}
	return lines
}

// Parameter returns the parameter with that name, or nil.
func (svc *Service) Parameter(name string) *Parameter { return svc.state.Parameters[name] }

// RemoveParameter deletes a parameter.
func (svc *Service) RemoveParameter(name string) { delete(svc.state.Parameters, name) }
