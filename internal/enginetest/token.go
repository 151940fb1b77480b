package enginetest

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// ApplyAndWait applies and waits until the control plane has joined.
func ApplyAndWait(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
	t.Helper()
	_, err := Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: Tell(t)})
	require.NoError(t, err)
}

// KeptToken is the token in the account.
func KeptToken(m *manifest.Cluster, a *awssim.AWS) (token string) {
	a.Edit(func(s *awssim.State) { token = s.SSM.Parameters["/clusterawsadm/"+m.Name+"/pki/token"].Value })
	return token
}

// TokensOf lists the bootstrap tokens of the only cluster, by name of the Secret: their
// expiry, and whether the control plane renews them.
func TokensOf(a *awssim.AWS) map[string]string {
	out := map[string]string{}
	a.Edit(func(s *awssim.State) {
		for _, c := range s.Kubernetes {
			c.Settle(time.Now())
			for path, o := range c.Objects {
				_, name, ok := strings.Cut(path, "/secrets/bootstrap-token-")
				if !ok {
					continue
				}
				data, _ := o["data"].(map[string]any)
				value := func(key string) string {
					text, _ := data[key].(string)
					raw, _ := base64.StdEncoding.DecodeString(text)
					return string(raw)
				}
				expires, _ := time.Parse(time.RFC3339, value("expiration"))
				out[name] = fmt.Sprint(time.Until(expires).Round(time.Minute))
				if strings.HasPrefix(value("description"), "superseded") {
					out[name] += " superseded"
				}
			}
		}
	})
	return out
}

// JoinedMachines counts the machines that have joined.
func JoinedMachines(a *awssim.AWS) (n int) {
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			if i.Boot != nil && !i.Boot.Joined.IsZero() && i.Boot.Failed == "" {
				n++
			}
		}
	})
	return n
}

// Passes advances the time, and the simulation.
func Passes(a *awssim.AWS, d time.Duration) {
	step := 10 * time.Minute
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(step, time.Until(end)))
		a.Edit(func(*awssim.State) {})
		step += step / 4 // the simulation advances with calls
	}
}

// Grows adds a machine to each pool, as an autoscaler does.
func Grows(a *awssim.AWS) {
	a.Edit(func(s *awssim.State) {
		for _, g := range s.AutoScaling.Groups {
			g.Desired++
		}
	})
	Passes(a, time.Hour)
}
