package cloud_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// dated answers requests with the time of its clock, which is ahead of this machine's.
type dated struct{ ahead time.Duration }

func (d *dated) Do(r *http.Request) (*http.Response, error) {
	h := http.Header{"Date": {time.Now().Add(d.ahead).UTC().Format(http.TimeFormat)}}
	const body = `<GetCallerIdentityResponse><GetCallerIdentityResult><Account>123456789012</Account></GetCallerIdentityResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></GetCallerIdentityResponse>`
	return &http.Response{StatusCode: http.StatusOK, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// The clock of a laptop may be wrong. What machines of AWS check has the time of AWS.
func TestTimeOfAWS(t *testing.T) {
	for ahead, want := range map[time.Duration]time.Duration{
		-time.Hour: -time.Hour, 10 * time.Minute: 10 * time.Minute, 30 * time.Second: 0, 0: 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := cloud.New(aws.Config{
				Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "key", ""), HTTPClient: &dated{ahead},
			}, "demo", cloud.Options{})
			require.Zero(t, time.Until(c.Now()))
			_, err := c.STS.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
			require.NoError(t, err)
			require.InDelta(t, want.Seconds(), time.Until(c.Now()).Seconds(), 1)
		})
	}
}
