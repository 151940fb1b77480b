package cloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// StandardParameter is how many characters a parameter of the standard tier holds. One of the
// advanced tier holds 8,192, and costs $0.05 a month ("Managing parameter tiers", Systems
// Manager user guide).
const StandardParameter = 4096

// PutSecretParameter creates a parameter of the cluster that machines of the cluster do not
// read, or overwrites it. The value is encrypted with the key of the run.
func (c *Clients) PutSecretParameter(ctx context.Context, name, value string, overwrite bool) error {
	in := &ssm.PutParameterInput{Name: &name, Value: &value, Type: types.ParameterTypeSecureString, Overwrite: &overwrite}
	if len(value) > StandardParameter {
		in.Tier = types.ParameterTierAdvanced
	}
	if c.KMSKey != "" {
		in.KeyId = aws.String(c.KMSKey)
	}
	_, err := c.SSM.PutParameter(ctx, in)
	return err
}
