package awssim

import (
	"bytes"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/replica"
)

// Asked is what a program has asked an account for.
type Asked = replica.Asked

// NewAsked returns an empty record.
func NewAsked() *Asked { return replica.NewAsked() }

// firstOfCopy is the serial number with which a copy begins: the IDs that it makes are not those
// of another simulated account.
const firstOfCopy = 1 << 20

// Copy returns a new account with the resources of another one, which it only reads, without
// secrets. asked is what a plan has asked that account for. The remarks say what could not
// be read, and is as in a new account.
func Copy(ctx context.Context, source aws.Config, asked *Asked, o Options) (a *AWS, remarks []string, err error) {
	o.Region = source.Region
	a = New(o)
	s := a.state
	s.Serial = firstOfCopy
	remarks, err = replica.Read(ctx, replica.Source{Config: source, Asked: asked, Now: a.account.Now()}, replica.State{
		EC2: &s.EC2, ELB: &s.ELB, IAM: &s.IAM, EKS: &s.EKS, AutoScaling: &s.AutoScaling, S3: &s.S3, Secrets: &s.Secrets, SSM: &s.SSM, Number: &s.Number,
	})
	if err != nil {
		return nil, remarks, err
	}
	var file bytes.Buffer
	if err := a.Save(&file); err != nil {
		return nil, remarks, err
	}
	a, err = Load(&file, o) // with the services that depend on the copied resources
	return a, remarks, err
}
