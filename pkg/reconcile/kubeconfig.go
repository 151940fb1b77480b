package reconcile

import (
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
)

// CertificateExpiry returns until when the certificate of an administrator's kubeconfig
// is valid, and why it should be renewed now; the reason is "" for a certificate of this
// cluster's CA that is valid for more than half a year. All are PEM.
func CertificateExpiry(certificate, key, ca []byte, now time.Time) (until time.Time, reason string) {
	return boot.Due(certificate, key, ca, now)
}
