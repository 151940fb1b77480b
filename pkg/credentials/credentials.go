// Package credentials encodes AWS credentials as a profile for the controllers of Cluster
// API Provider AWS.
package credentials

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Profile returns a configuration file with one profile, "default", byte for byte as
// upstream's clusterawsadm writes it.
func Profile(c aws.Credentials, region string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\nregion = %s\n\n", c.AccessKeyID, c.SecretAccessKey, region)
	if c.SessionToken != "" {
		fmt.Fprintf(&b, "aws_session_token = %s\n\n", c.SessionToken)
	}
	return b.String()
}

// Encode returns a profile in base64, as for AWS_B64ENCODED_CREDENTIALS.
func Encode(profile string) string { return base64.StdEncoding.EncodeToString([]byte(profile)) }
