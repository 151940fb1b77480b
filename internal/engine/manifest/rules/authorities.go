package rules

import (
	"fmt"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// checkAuthorities checks the certificates and keys that the user brings, in Secrets that Cluster API
// finds by name.
func (c *checks) checkAuthorities() {
	_, external := c.cluster.Secrets[c.cluster.Name+"-apiserver-etcd-client"]
	for suffix, what := range map[string]string{"ca": "the CA of the cluster", "etcd": "the CA of etcd", "proxy": "the CA of the front proxy"} {
		o, data := c.keysIn(suffix)
		if data == nil {
			continue
		}
		key := data["tls.key"]
		if len(key) == 0 && (suffix != "etcd" || !external) {
			c.fail(o.Problem("data", what+" has no key", "add tls.key"))
			continue
		}
		soon, err := boot.CheckAuthority(data["tls.crt"], key, time.Now())
		switch {
		case err != nil:
			c.fail(o.Problem("data", fmt.Sprintf("%s: %v", what, err), "replace tls.crt and tls.key"))
		case soon != "":
			c.warn(o.Problem("data", fmt.Sprintf("%s ends on %s, and with it all certificates of the cluster", what, soon), "bring one that is valid longer"))
		}
	}
	if o, data := c.keysIn("sa"); data != nil {
		if err := boot.CheckServiceAccount(data["tls.crt"], data["tls.key"]); err != nil {
			c.fail(o.Problem("data", fmt.Sprintf("the key of service accounts: %v", err), "replace tls.crt, the public key, and tls.key"))
		}
	}
	if o, data := c.keysIn("apiserver-etcd-client"); data != nil {
		if err := boot.CheckPair(data["tls.crt"], data["tls.key"]); err != nil {
			c.fail(o.Problem("data", fmt.Sprintf("the client certificate for etcd: %v", err), "replace tls.crt and tls.key"))
		}
	}
}

// keysIn returns the Secret with keys of the cluster that has a suffix, and its data.
func (c *checks) keysIn(suffix string) (*manifest.Entry, map[string][]byte) {
	o, s := c.lookup(manifest.KindSecret, c.cluster.Name+"-"+suffix), c.cluster.Secrets[c.cluster.Name+"-"+suffix]
	if o == nil || s == nil {
		return nil, nil
	}
	return o, s.Data
}
