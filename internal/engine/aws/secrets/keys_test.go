package secrets_test

import (
	"encoding/pem"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// The keys of a cluster and its join token are encrypted with the key of the run, which does
// not change that of machines' boot data: they could not decrypt it.
func TestKMSKey(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	synctest.Test(t, func(t *testing.T) {
		const key = "alias/clusters"
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.AddKey(a, key)
		_, err := run.Open(m, cluster.Target{Config: a.Config(), KMSKey: key}).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		keys := 0
		a.Edit(func(s *awssim.State) {
			for name, p := range s.SSM.Parameters {
				secret := strings.HasPrefix(name, "/clusterawsadm/quickstart/pki/")
				require.Equal(t, secret, p.Key == key, name)
				if secret {
					keys++
				}
			}
		})
		require.Equal(t, 5, keys)
		enginetest.RequireNoChange(t, m, a)
		enginetest.MustDelete(t, m, a)
	})
}

// A certificate authority may have a chain that is longer than a standard parameter.
func TestLongCertificates(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		before := a.Inventory()
		keys, err := boot.NewPKI("ECDSA-P256", 0, time.Now())
		require.NoError(t, err)
		for len(keys.CA.Cert) <= 4096 {
			keys.CA.Cert = append(keys.CA.Cert, keys.CA.Cert...)
		}
		block, _ := pem.Decode(keys.CA.Cert)
		require.NotNil(t, block)
		m.Secrets["quickstart-ca"] = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "quickstart-ca"},
			Data:       map[string][]byte{"tls.crt": keys.CA.Cert, "tls.key": keys.CA.Key},
		}
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		enginetest.MustDelete(t, m, a)
		require.Equal(t, before, a.Inventory())
	})
}

// Older versions stored each certificate and each key in a parameter of its own. Runs use and delete them.
func TestKeysOfAnOlderVersion(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		const path = "/clusterawsadm/quickstart/pki/"
		parts := map[string]string{}
		a.Edit(func(s *awssim.State) {
			enginetest.EditKeys(s, "quickstart", func(keys map[string]string) { maps.Copy(parts, keys) })
			for name, p := range maps.Clone(s.SSM.Parameters) {
				if strings.HasPrefix(name, path) && !strings.HasSuffix(name, "/token") {
					delete(s.SSM.Parameters, name)
					for part, value := range parts {
						single := *p
						single.Name, single.Value = path+part, value
						s.SSM.Parameters[single.Name] = &single
					}
				}
			}
		})
		require.Len(t, parts, 8)
		enginetest.RequireNoChange(t, m, a)
		enginetest.MustDelete(t, m, a)
		require.Empty(t, a.Inventory())
	})
}
