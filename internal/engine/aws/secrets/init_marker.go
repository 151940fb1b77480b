package secrets

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// InitMarker is the SSM parameter that records which machine runs kubeadm init. If that
// machine is lost, its replacement joins the control plane: a second kubeadm init would
// create a second cluster behind the same endpoint.
type InitMarker struct {
	Machine *graph.Ref[ec2.InstanceState]
}

var (
	_ graph.Desired[ec2.Named] = (*InitMarker)(nil)
	_ graph.Creator[ec2.Named] = (*InitMarker)(nil)
	_ graph.Deleter[ec2.Named] = (*InitMarker)(nil)
)

// Needs implements graph.Desired.
func (m *InitMarker) Needs() []graph.Edge { return graph.Reads(m.Machine) }

// Find implements graph.Desired.
func (m *InitMarker) Find(ctx context.Context, c *cloud.Clients) (*ec2.Named, error) {
	id, err := InitializedBy(ctx, c)
	if err != nil || id == "" {
		return nil, err
	}
	n := ec2.Named(id)
	return &n, nil
}

// Diff implements graph.Desired. The marker never changes.
func (m *InitMarker) Diff(*ec2.Named) graph.Diff { return nil }

// Create implements graph.Creator.
func (m *InitMarker) Create(ctx context.Context, c *cloud.Clients) (*ec2.Named, error) {
	n := ec2.Named(m.Machine.CloudID())
	_, err := c.SSM.PutParameter(ctx, &ssm.PutParameterInput{
		Name: aws.String(c.ParameterPath("init")), Value: aws.String(string(n)), Type: types.ParameterTypeString, Overwrite: aws.Bool(false),
	})
	return &n, err
}

// Delete implements graph.Deleter.
func (m *InitMarker) Delete(ctx context.Context, c *cloud.Clients, _ *ec2.Named) error {
	_, err := c.SSM.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String(c.ParameterPath("init"))})
	return err
}

// InitializedBy returns the ID of the machine in the init marker; "" if there is none.
func InitializedBy(ctx context.Context, c *cloud.Clients) (string, error) {
	return StoredParameter(ctx, c, "init")
}

// StoredParameter returns the value of a parameter of the cluster; "" if it does not
// exist.
func StoredParameter(ctx context.Context, c *cloud.Clients, name string) (string, error) {
	return cloud.Remember(ctx, c, name, func(ctx context.Context) (string, error) {
		out, err := c.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(c.ParameterPath(name))})
		if cloud.NotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return aws.ToString(out.Parameter.Value), nil
	})
}

// initMarkerKind declares the init marker.
func initMarkerKind() *kind.Any {
	return kind.Of(kind.Kind[ec2.Named]{
		Name: "init-marker", Area: kind.AreaControlPlane, Secret: true, Single: true, List: listInitMarker, Delete: &InitMarker{},
		Find: func(ctx context.Context, c *cloud.Clients, _ ec2.Named) (*ec2.Named, error) {
			return (&InitMarker{}).Find(ctx, c)
		},
		Statement: kind.Parameters, Actions: []string{"ssm:AddTagsToResource", "ssm:DeleteParameter", "ssm:GetParameter", "ssm:PutParameter"},
	})
}

func listInitMarker(ctx context.Context, c *cloud.Clients, _ kind.Owner) ([]ec2.Named, error) {
	machine, err := InitializedBy(ctx, c)
	if err != nil || machine == "" {
		return nil, err
	}
	return []ec2.Named{ec2.Named(c.ParameterPath("init"))}, nil
}
