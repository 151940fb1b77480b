package awssim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// SSMState is Parameter Store.
type SSMState struct {
	Parameters map[string]*Parameter // by name
}

// Parameter is one parameter.
type Parameter struct {
	Name, Value, Type string
	Version           int64
	Modified          time.Time
	Tags              map[string]string
}

func newSSMState() SSMState { return SSMState{Parameters: map[string]*Parameter{}} }

func (a *AWS) simulateSSM() {
	on(a, a.putParameter, "Name", "Value", "Type", "Overwrite", "Tags", "Description", "Tier")
	on(a, a.getParameter, "Name", "WithDecryption")
	on(a, a.getParametersByPath, "Path", "Recursive", "WithDecryption", "NextToken", "MaxResults")
	on(a, a.describeParameters, "ParameterFilters", "NextToken", "MaxResults")
	on(a, a.deleteParameter, "Name")
	on(a, a.deleteParameters, "Names")
}

func (a *AWS) putParameter(in *ssm.PutParameterInput) (*ssm.PutParameterOutput, error) {
	name := aws.ToString(in.Name)
	if strings.HasPrefix(name, "/aws") || strings.HasPrefix(name, "/ssm") {
		return nil, fail("ValidationException", "parameter names may not begin with %q", name[:4])
	}
	if strings.Count(name, "/") > 16 || len(name) > 1011 {
		return nil, fail("ValidationException", "the parameter name %s is too long or too deep", name)
	}
	if most := 4096; len(aws.ToString(in.Value)) > most || aws.ToString(in.Value) == "" {
		return nil, fail("ValidationException", "standard tier parameters hold 1 to %d characters", most)
	}
	p, exists := a.state.SSM.Parameters[name]
	switch {
	case exists && !aws.ToBool(in.Overwrite):
		return nil, fail("ParameterAlreadyExists", "the parameter already exists")
	case exists && len(in.Tags) > 0:
		return nil, fail("ValidationException", "tags and overwrite cannot be used together")
	case !exists:
		p = &Parameter{Name: name, Tags: map[string]string{}}
		a.state.SSM.Parameters[name] = p
	}
	for _, t := range in.Tags {
		p.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	p.Value, p.Type, p.Modified = aws.ToString(in.Value), string(in.Type), a.now()
	p.Version++
	return &ssm.PutParameterOutput{Version: p.Version}, nil
}

func (p *Parameter) out() types.Parameter {
	return types.Parameter{
		Name: aws.String(p.Name), Value: aws.String(p.Value), Type: types.ParameterType(p.Type),
		Version: p.Version, LastModifiedDate: aws.Time(p.Modified),
	}
}

func (a *AWS) getParameter(in *ssm.GetParameterInput) (*ssm.GetParameterOutput, error) {
	p, ok := a.state.SSM.Parameters[aws.ToString(in.Name)]
	if value, public := a.publicParameter(aws.ToString(in.Name)); public {
		p, ok = &Parameter{Name: *in.Name, Value: value, Type: string(types.ParameterTypeString), Version: 1}, true
	}
	if !ok {
		return nil, fail("ParameterNotFound", "%s", aws.ToString(in.Name))
	}
	out := p.out()
	return &ssm.GetParameterOutput{Parameter: &out}, nil
}

func (a *AWS) getParametersByPath(in *ssm.GetParametersByPathInput) (*ssm.GetParametersByPathOutput, error) {
	prefix := strings.TrimSuffix(aws.ToString(in.Path), "/") + "/"
	var found []types.Parameter
	for _, name := range slices.Sorted(maps.Keys(a.state.SSM.Parameters)) {
		rest, below := strings.CutPrefix(name, prefix)
		if below && (aws.ToBool(in.Recursive) || !strings.Contains(rest, "/")) {
			found = append(found, a.state.SSM.Parameters[name].out())
		}
	}
	part, next, err := page(a, found, in.NextToken, in.MaxResults, 10)
	return &ssm.GetParametersByPathOutput{Parameters: part, NextToken: next}, err
}

// describeParameters knows one kind of filter: tag:KEY with option Equals.
func (a *AWS) describeParameters(in *ssm.DescribeParametersInput) (*ssm.DescribeParametersOutput, error) {
	var found []types.ParameterMetadata
	for _, name := range slices.Sorted(maps.Keys(a.state.SSM.Parameters)) {
		p, matches := a.state.SSM.Parameters[name], true
		for _, f := range in.ParameterFilters {
			key, isTag := strings.CutPrefix(aws.ToString(f.Key), "tag:")
			if !isTag || aws.ToString(f.Option) != "Equals" {
				return nil, fail("ValidationException", "filter %s is not simulated", aws.ToString(f.Key))
			}
			matches = matches && slices.Contains(f.Values, p.Tags[key])
		}
		if matches {
			found = append(found, types.ParameterMetadata{Name: aws.String(p.Name), Type: types.ParameterType(p.Type), Version: p.Version, LastModifiedDate: aws.Time(p.Modified)})
		}
	}
	part, next, err := page(a, found, in.NextToken, in.MaxResults, 50)
	return &ssm.DescribeParametersOutput{Parameters: part, NextToken: next}, err
}

func (a *AWS) deleteParameter(in *ssm.DeleteParameterInput) (*ssm.DeleteParameterOutput, error) {
	name := aws.ToString(in.Name)
	if _, ok := a.state.SSM.Parameters[name]; !ok {
		return nil, fail("ParameterNotFound", "%s", name)
	}
	delete(a.state.SSM.Parameters, name)
	return &ssm.DeleteParameterOutput{}, nil
}

func (a *AWS) deleteParameters(in *ssm.DeleteParametersInput) (*ssm.DeleteParametersOutput, error) {
	if len(in.Names) > 10 {
		return nil, fail("ValidationException", "at most 10 names")
	}
	out := &ssm.DeleteParametersOutput{}
	for _, name := range in.Names {
		if _, ok := a.state.SSM.Parameters[name]; ok {
			delete(a.state.SSM.Parameters, name)
			out.DeletedParameters = append(out.DeletedParameters, name)
		} else {
			out.InvalidParameters = append(out.InvalidParameters, name)
		}
	}
	return out, nil
}

// ssmTagged lists the parameters.
func (a *AWS) ssmTagged() (all []Tagged) {
	for name, p := range a.state.SSM.Parameters {
		all = append(all, Tagged{ARN: a.regionalARN("ssm", "parameter/"+strings.TrimPrefix(name, "/")), Tags: p.Tags, Born: p.Modified})
	}
	return all
}

// inventorySSM lists the parameters.
func (a *AWS) inventorySSM() []string {
	return each(sortedKeys(a.state.SSM.Parameters), func(name string) string { return "Parameter " + name })
}

// detailedSSM is inventorySSM with the types and the tags.
func (a *AWS) detailedSSM() (lines []string) {
	for _, p := range a.state.SSM.Parameters {
		lines = append(lines, fmt.Sprintf("Parameter %s: %s; tags %s", p.Name, p.Type, pairs(p.Tags)))
	}
	return lines
}

// Parameter returns the parameter of a name, or nil.
func (a *AWS) Parameter(name string) *Parameter { return a.state.SSM.Parameters[name] }

// RemoveParameter removes a parameter.
func (a *AWS) RemoveParameter(name string) { delete(a.state.SSM.Parameters, name) }
