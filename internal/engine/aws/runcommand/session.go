package runcommand

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// StartSession starts a session of Session Manager with a machine. One that no plugin opens ends by itself.
func StartSession(ctx context.Context, c *cloud.Clients, machine string) (cluster.Session, error) {
	o := c.SSM.Options()
	endpoint, err := o.EndpointResolverV2.ResolveEndpoint(ctx, ssm.EndpointParameters{Region: aws.String(c.Region), Endpoint: o.BaseEndpoint})
	if err != nil {
		return cluster.Session{}, err
	}
	out, err := c.SSM.StartSession(ctx, &ssm.StartSessionInput{Target: &machine})
	switch {
	case cloud.Denied(err):
		return cluster.Session{}, errors.New("you lack ssm:StartSession for the machine " + machine)
	case cloud.Code(err) == "TargetNotConnected":
		return cluster.Session{}, fmt.Errorf("%s: %w", machine, cluster.ErrNotConnected)
	case err != nil:
		return cluster.Session{}, err
	}
	return cluster.Session{
		Machine: machine, Region: c.Region, Endpoint: endpoint.URI.String(),
		ID: aws.ToString(out.SessionId), Token: aws.ToString(out.TokenValue), URL: aws.ToString(out.StreamUrl),
	}, nil
}
