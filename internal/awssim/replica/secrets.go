package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	simsecrets "github.com/clusterawsadm/clusterawsadm/internal/awssim/secretsmanager"
)

// secrets reads the names of the secrets with the tags that the plan asks for.
func (r *reader) secrets(ctx context.Context) error {
	c, found := secretsmanager.NewFromConfig(r.Config), map[string]*simsecrets.Secret{}
	for _, in := range of[secretsmanager.ListSecretsInput](r.Asked) {
		in := *in
		in.NextToken = nil
		err := pages(ctx, secretsmanager.NewListSecretsPaginator(c, &in), func(p *secretsmanager.ListSecretsOutput) {
			for _, s := range p.SecretList {
				own := &simsecrets.Secret{
					ARN: aws.ToString(
						s.ARN,
					),
					Name:        aws.ToString(s.Name),
					Description: aws.ToString(s.Description),
					Tags:        map[string]string{},
					Born:        r.since(s.CreatedDate),
					Changed:     r.since(s.LastChangedDate),
					Versions:    []*simsecrets.SecretVersion{{ID: "withheld", Stage: "AWSCURRENT", Born: r.since(s.LastChangedDate)}},
				}
				for _, t := range s.Tags {
					own.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
				}
				if s.DeletedDate == nil {
					found[own.Name] = own
				}
			}
		})
		if err != nil {
			return err
		}
	}
	r.to.Secrets.Secrets = found
	return nil
}
