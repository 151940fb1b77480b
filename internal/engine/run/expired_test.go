package run_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// When the credentials expire, the run stops once and says what to do, instead of failing
// for every resource. The next run continues.
func TestCredentialsExpire(t *testing.T) {
	const file = "quickstart.yaml"
	for n, code := range map[int32]string{30: "ExpiredTokenException", 80: "RequestExpired", 120: "ExpiredToken"} {
		m := enginetest.LoadQuick(t, file)
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Prepared(t, m)
			before, p := a.Inventory(), a.Process()
			var calls atomic.Int32
			p.Refuse = func(string, string) error {
				if calls.Add(1) < n {
					return nil
				}
				return &smithy.GenericAPIError{Code: code, Message: "The security token included in the request is expired"}
			}
			began := time.Now()
			failed := 0
			_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) {
				if e.What == plan.Failed {
					failed++
				}
			}})
			login := new(cloud.LoginError)
			require.ErrorAs(t, err, &login)
			require.LessOrEqual(t, failed, 1)
			require.Equal(t, login.Error(), err.Error())
			require.Contains(t, err.Error(), "the AWS credentials have expired: log in again, then run the same command again")
			require.Less(t, time.Since(began), 10*time.Minute)
			enginetest.MustApply(t, m, a)
			enginetest.RequireNoChange(t, m, a)
			enginetest.MustDelete(t, m, a)
			require.Equal(t, before, a.Inventory())
		})
	}
}

// A session whose credentials cannot be renewed is told in the same way.
func TestCredentialsAreNotRenewed(t *testing.T) {
	var cfg aws.Config
	cfg.Region = "us-east-1"
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("the SSO session has expired")
	})
	c := cloud.New(cfg, "demo", cloud.Options{})
	_, err := c.STS.GetCallerIdentity(t.Context(), nil)
	require.True(t, cloud.Expired(err), "%v", err)
}
