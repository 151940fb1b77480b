package credentials_test

import (
	"encoding/base64"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/pkg/credentials"
)

// The output of upstream, byte for byte.
func TestProfile(t *testing.T) {
	c := aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SEC"}
	p := credentials.Profile(c, "us-east-1")
	assert.Equal(t, "[default]\naws_access_key_id = AKID\naws_secret_access_key = SEC\nregion = us-east-1\n\n", p)
	assert.Equal(t, "W2RlZmF1bHRdCmF3c19hY2Nlc3Nfa2V5X2lkID0gQUtJRAphd3Nfc2VjcmV0X2FjY2Vzc19rZXkgPSBTRUMKcmVnaW9uID0gdXMtZWFzdC0xCgo=", credentials.Encode(p))
	c.SessionToken = "TOK"
	p = credentials.Profile(c, "us-east-1")
	assert.Equal(t, "[default]\naws_access_key_id = AKID\naws_secret_access_key = SEC\nregion = us-east-1\n\naws_session_token = TOK\n\n", p)
	text, err := base64.StdEncoding.DecodeString(credentials.Encode(p))
	require.NoError(t, err)
	assert.Equal(t, p, string(text))
}
