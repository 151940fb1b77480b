package replica

import (
	"context"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	simssm "github.com/clusterawsadm/clusterawsadm/internal/awssim/ssm"
)

// parameters reads the parameters below the paths, with the names and with the tags that the
// plan asks for. Of those of type SecureString, only the names are copied. Records of locks are
// not copied: no run holds the lock of a cluster in the copy.
func (r *reader) parameters(ctx context.Context) error {
	c, found := ssm.NewFromConfig(r.Config), map[string]*simssm.Parameter{}
	for _, read := range []func(context.Context, *ssm.Client, map[string]*simssm.Parameter) error{r.parametersByPath, r.parametersByName, r.parametersByTag} {
		if err := read(ctx, c, found); err != nil {
			return err
		}
	}
	r.to.SSM.Parameters = found
	return nil
}

func (r *reader) parametersByPath(ctx context.Context, c *ssm.Client, found map[string]*simssm.Parameter) error {
	for path := range r.askedPaths() {
		p := ssm.NewGetParametersByPathPaginator(c, &ssm.GetParametersByPathInput{Path: &path, Recursive: aws.Bool(true)})
		err := pages(ctx, p, func(p *ssm.GetParametersByPathOutput) {
			for _, x := range p.Parameters {
				r.addParameter(found, x)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) parametersByName(ctx context.Context, c *ssm.Client, found map[string]*simssm.Parameter) error {
	for name := range r.askedParameters() {
		out, err := c.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		r.addParameter(found, *out.Parameter)
	}
	return nil
}

// parametersByTag reads the names of parameters with tags, and the tags by which they were found.
func (r *reader) parametersByTag(ctx context.Context, c *ssm.Client, found map[string]*simssm.Parameter) error {
	for _, in := range of[ssm.DescribeParametersInput](r.Asked) {
		in := *in
		in.NextToken = nil
		err := pages(ctx, ssm.NewDescribeParametersPaginator(c, &in), func(p *ssm.DescribeParametersOutput) {
			for _, x := range p.Parameters {
				name := aws.ToString(x.Name)
				if found[name] == nil {
					r.addParameter(found, types.Parameter{Name: x.Name, Type: x.Type, Version: x.Version, LastModifiedDate: x.LastModifiedDate})
				}
				if own := found[name]; own != nil {
					maps.Copy(own.Tags, tagsAsked(in.ParameterFilters))
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tagsAsked returns the tags of all parameters that filters select.
func tagsAsked(filters []types.ParameterStringFilter) map[string]string {
	tags := map[string]string{}
	for _, f := range filters {
		if key, ok := strings.CutPrefix(aws.ToString(f.Key), "tag:"); ok && len(f.Values) == 1 {
			tags[key] = f.Values[0]
		}
	}
	return tags
}

func (r *reader) addParameter(found map[string]*simssm.Parameter, x types.Parameter) {
	name := aws.ToString(x.Name)
	if strings.Contains(name, "/lock/") {
		return
	}
	own := &simssm.Parameter{
		Name:     name,
		Type:     string(x.Type),
		Version:  x.Version,
		Created:  r.since(x.LastModifiedDate),
		Modified: r.since(x.LastModifiedDate),
		Tags:     map[string]string{},
	}
	if own.Withheld = x.Type != types.ParameterTypeString || x.Value == nil; !own.Withheld {
		own.Value = *x.Value
	}
	found[name] = own
}

func (r *reader) askedPaths() map[string]bool {
	paths := map[string]bool{}
	for _, in := range of[ssm.GetParametersByPathInput](r.Asked) {
		path := aws.ToString(in.Path)
		if !strings.HasSuffix(path, "/lock") {
			paths[path] = true
		}
	}
	return paths
}

func (r *reader) askedParameters() map[string]bool {
	names := map[string]bool{}
	for _, in := range of[ssm.GetParameterInput](r.Asked) {
		names[aws.ToString(in.Name)] = true
	}
	for _, in := range of[ssm.GetParametersInput](r.Asked) {
		for _, name := range in.Names {
			names[name] = true
		}
	}
	return names
}
