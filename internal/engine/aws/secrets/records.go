package secrets

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// BucketRecord is the name of the record of the bucket that the cluster has made.
const BucketRecord = "bucket"

// records are the names of the SSM parameters in which runs record what they have done, as far as most looks at a cluster ask for them. They
// are read with one call, by name: a listing may be late. GetParameters takes ten names.
func records() []string {
	return []string{initParameter, restoreParameter, BucketRecord, DeletionProtectionKind, namesParameter + "/0", namesParameter + "/1"}
}

// Record returns the value of the parameter of the cluster with a name; "" if it does not exist.
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

// recordActions are the actions with which a record is read and written.
func recordActions() []string {
	return []string{"ssm:AddTagsToResource", "ssm:DeleteParameter", "ssm:GetParameter", "ssm:GetParameters", "ssm:PutParameter"}
}
