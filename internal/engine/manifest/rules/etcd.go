package rules

import (
	"fmt"
	"strings"
	"sync"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// etcdFlags are the flags of etcd 3.4 to 3.6, and the form of the values of each, as in the table of the components
// (server/embed/config.go and server/etcdmain/config.go of etcd).
//
//nolint:gochecknoglobals // constant data, which is made when it is needed first
var etcdFlags = sync.OnceValue(func() map[string]byte {
	forms := map[string]byte{}
	for form, names := range map[byte]string{
		'b': `auto-tls client-cert-auth debug discovery-insecure-skip-tls-verify discovery-insecure-transport enable-distributed-tracing
			enable-grpc-gateway enable-log-rotation enable-pprof enable-v2 experimental-compact-hash-check-enabled
			experimental-enable-distributed-tracing experimental-enable-lease-checkpoint experimental-enable-lease-checkpoint-persist
			experimental-initial-corrupt-check experimental-memory-mlock experimental-peer-skip-client-san-verification
			experimental-stop-grpc-service-on-defrag experimental-txn-mode-write-with-shared-buffer force-new-cluster initial-election-tick-advance
			memory-mlock peer-auto-tls peer-client-cert-auth peer-skip-client-san-verification pre-vote socket-reuse-address socket-reuse-port
			strict-reconfig-check unsafe-no-fsync version`,
		'd': `backend-batch-interval compact-hash-check-time compaction-sleep-interval corrupt-check-time discovery-dial-timeout discovery-keepalive-time
			discovery-keepalive-timeout discovery-request-timeout downgrade-check-time experimental-compact-hash-check-time
			experimental-compaction-sleep-interval experimental-corrupt-check-time experimental-downgrade-check-time experimental-warning-apply-duration
			experimental-warning-unary-request-duration experimental-watch-progress-notify-interval grpc-keepalive-interval grpc-keepalive-min-time
			grpc-keepalive-timeout raft-read-timeout raft-write-timeout warning-apply-duration warning-unary-request-duration
			watch-progress-notify-interval`,
		'i': `auth-token-ttl backend-batch-limit bcrypt-cost bootstrap-defrag-threshold-megabytes compaction-batch-limit distributed-tracing-sampling-rate
			election-timeout experimental-bootstrap-defrag-threshold-megabytes experimental-compaction-batch-limit
			experimental-distributed-tracing-sampling-rate experimental-snapshot-catchup-entries heartbeat-interval max-learners max-request-bytes
			max-snapshots max-txn-ops max-wals proxy-dial-timeout proxy-failure-wait proxy-read-timeout proxy-refresh-interval proxy-write-timeout
			quota-backend-bytes self-signed-cert-validity snapshot-catchup-entries snapshot-count`,
		's': `advertise-client-urls auth-token auto-compaction-mode auto-compaction-retention backend-bbolt-freelist-type cert-file cipher-suites
			client-cert-allowed-hostname client-cert-file client-crl-file client-key-file config-file cors data-dir discovery discovery-cacert
			discovery-cert discovery-endpoints discovery-fallback discovery-key discovery-password discovery-proxy discovery-srv discovery-srv-name
			discovery-token discovery-user distributed-tracing-address distributed-tracing-instance-id distributed-tracing-service-name
			experimental-distributed-tracing-address experimental-distributed-tracing-instance-id experimental-distributed-tracing-service-name
			experimental-enable-v2v3 feature-gates host-whitelist initial-advertise-peer-urls initial-cluster initial-cluster-state
			initial-cluster-token key-file listen-client-http-urls listen-client-urls listen-metrics-urls listen-peer-urls log-format log-level
			log-outputs log-package-levels log-rotation-config-json logger max-concurrent-streams metrics name peer-cert-allowed-cn
			peer-cert-allowed-hostname peer-cert-file peer-client-cert-file peer-client-key-file peer-crl-file peer-key-file peer-trusted-ca-file proxy
			tls-max-version tls-min-version trusted-ca-file v2-deprecation wal-dir`,
	} {
		for _, name := range strings.Fields(names) {
			forms[name] = form
		}
	}
	return forms
})

// checkEtcdArguments checks the arguments of etcd, which does not start with others.
func (c *checks) checkEtcdArguments(o *manifest.Entry, path string, args []bootstrapv1.Arg) {
	for i, a := range args {
		at := argumentPath(o, path, i, a.Name)
		form, known := etcdFlags()[a.Name]
		switch {
		case !known:
			c.fail(o.Problem(at, "etcd has no argument "+a.Name, "remove it"))
		case a.Value != nil && badValue(form, *a.Value) != "":
			c.fail(o.Problem(at, fmt.Sprintf("%q is not %s, which etcd expects of %s", *a.Value, badValue(form, *a.Value), a.Name), "change the value"))
		}
	}
}
