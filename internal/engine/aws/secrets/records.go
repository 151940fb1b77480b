package secrets

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
)

// BucketRecord is the name of the parameter with the name of the bucket that a run has created for the cluster.
const BucketRecord = "bucket"

// records returns the names of the SSM parameters that most runs read to know what earlier runs have done. One GetParameters call reads all of
// them; it takes up to ten names. They are not listed by path, because a list may not have the latest parameters yet.
func records() []string {
	return []string{initParameter, restoreParameter, BucketRecord, DeletionProtectionKind, TagKeysKind, namesParameter + "/0", namesParameter + "/1"}
}

// Record returns the value of an SSM parameter of the cluster; "" if the parameter does not exist.
func Record(ctx context.Context, c *cloud.Clients, name string) (string, error) {
	question, names := "records of runs", records()
	if !slices.Contains(names, name) {
		question, names = name, []string{name}
	}
	values, err := cloud.Remember(ctx, c, question, func(ctx context.Context) (map[string]string, error) {
		in := &ssm.GetParametersInput{}
		for _, name := range names {
			in.Names = append(in.Names, c.ParameterPath(name))
		}
		out, err := c.SSM.GetParameters(ctx, in)
		if err != nil {
			return nil, err
		}
		values := map[string]string{}
		for _, x := range out.Parameters {
			values[aws.ToString(x.Name)] = aws.ToString(x.Value)
		}
		return values, nil
	})
	return values[c.ParameterPath(name)], err
}

// onlyOne returns the List function of a kind of which a cluster has one resource at most.
func onlyOne[S any](find func(ctx context.Context, c *cloud.Clients) (*S, error)) func(context.Context, *cloud.Clients, kind.Owner) ([]S, error) {
	return func(ctx context.Context, c *cloud.Clients, _ kind.Owner) ([]S, error) {
		s, err := find(ctx, c)
		if s == nil || err != nil {
			return nil, err
		}
		return []S{*s}, nil
	}
}

// recordActions returns the IAM actions that a run needs to read, write and delete a record.
func recordActions() []string {
	return []string{"ssm:AddTagsToResource", "ssm:DeleteParameter", "ssm:GetParameter", "ssm:GetParameters", "ssm:PutParameter"}
}
