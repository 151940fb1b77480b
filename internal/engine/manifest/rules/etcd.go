package rules

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
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
			experimental-distributed-tracing-sampling-rate experimental-snapshot-catchup-entries heartbeat-interval max-concurrent-streams max-learners max-request-bytes
			max-snapshots max-txn-ops max-wals proxy-dial-timeout proxy-failure-wait proxy-read-timeout proxy-refresh-interval proxy-write-timeout
			quota-backend-bytes self-signed-cert-validity snapshot-catchup-entries snapshot-count`,
		's': `advertise-client-urls auth-token auto-compaction-mode auto-compaction-retention backend-bbolt-freelist-type cert-file cipher-suites
			client-cert-allowed-hostname client-cert-file client-crl-file client-key-file config-file cors data-dir discovery discovery-cacert
			discovery-cert discovery-endpoints discovery-fallback discovery-key discovery-password discovery-proxy discovery-srv discovery-srv-name
			discovery-token discovery-user distributed-tracing-address distributed-tracing-instance-id distributed-tracing-service-name
			experimental-distributed-tracing-address experimental-distributed-tracing-instance-id experimental-distributed-tracing-service-name
			experimental-enable-v2v3 feature-gates host-whitelist initial-advertise-peer-urls initial-cluster initial-cluster-state
			initial-cluster-token key-file listen-client-http-urls listen-client-urls listen-metrics-urls listen-peer-urls log-format log-level
			log-outputs log-package-levels log-rotation-config-json logger metrics name peer-cert-allowed-cn
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
func (c *checks) checkEtcdArguments(o *manifest.Entry, path string, config *bootstrapv1.ClusterConfiguration, v kubernetesVersion) {
	minor := etcdMinor(config.Etcd.Local.ImageTag, v)
	for i, a := range config.Etcd.Local.ExtraArgs {
		at := argumentPath(o, path, i, a.Name)
		_, known := etcdFlags()[a.Name]
		first, last := etcdLife(a.Name)
		switch why := wrongEtcdValue(a.Name, manifest.Deref(a.Value)); {
		case !known:
			c.fail(o.Problem(at, "etcd has no argument "+a.Name, "remove it"))
		case minor < first || minor > last:
			c.fail(o.Problem(at, fmt.Sprintf("etcd 3.%d has no argument %s", minor, a.Name), "remove it"))
		case why != "" && a.Value != nil:
			c.fail(o.Problem(at, fmt.Sprintf("%s of etcd: %s", a.Name, why), "change the value, or remove the argument"))
		case a.Name == "initial-cluster-state" && manifest.Deref(a.Value) == "existing": // kubeadm says new to the first member, and existing to the others
			c.fail(o.Problem(at, "the first etcd does not start: it finds no members", "remove it: kubeadm sets it"))
		case a.Name == "initial-cluster-state":
			c.warn(o.Problem(at, "a member that joins, such as in place of another one, needs existing", "remove it: kubeadm sets it"))
		}
	}
	c.checkEtcdTogether(o, path, config)
	c.checkEtcdVariables(o, strings.TrimSuffix(path, "extraArgs")+"extraEnvs", &config.Etcd.Local)
}

// wrongEtcdValue returns why etcd does not take a value of a flag; "" if it does.
func wrongEtcdValue(flag, value string) string {
	if bad := badValue(etcdFlags()[flag], value); bad != "" {
		return fmt.Sprintf("%q is not %s", value, bad)
	}
	if rule := etcdRules()[flag]; rule != nil && value != "" {
		return rule(value)
	}
	return ""
}

// checkEtcdVariables checks the variables that set flags of etcd: ETCD_LOG_LEVEL sets log-level, if that is not among the arguments (SetFlagsFromEnv in
// pkg/flags of etcd). Other variables are ignored.
func (c *checks) checkEtcdVariables(o *manifest.Entry, at string, local *bootstrapv1.LocalEtcd) {
	if local.ExtraEnvs == nil {
		return
	}
	for i, e := range *local.ExtraEnvs {
		name, is := strings.CutPrefix(e.Name, "ETCD_")
		flag := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		given := slices.Contains(kubeadmOfEtcd(), flag) || slices.ContainsFunc(local.ExtraArgs, func(a bootstrapv1.Arg) bool { return a.Name == flag })
		if _, known := etcdFlags()[flag]; !is || !known || given || e.Value == "" {
			continue
		}
		if why := wrongEtcdValue(flag, e.Value); why != "" {
			c.fail(o.Problem(fmt.Sprintf("%s[%d].value", at, i), "etcd does not start: "+why, "change the value, or remove the variable"))
		}
	}
}

// kubeadmOfEtcd are the flags that kubeadm sets always (getEtcdCommand in cmd/kubeadm/app/phases/etcd/local.go).
func kubeadmOfEtcd() []string {
	return strings.Fields(`advertise-client-urls cert-file client-cert-auth data-dir initial-advertise-peer-urls initial-cluster key-file listen-client-urls
		listen-metrics-urls listen-peer-urls name peer-cert-file peer-client-cert-auth peer-key-file peer-trusted-ca-file snapshot-count trusted-ca-file`)
}

// etcdMinor returns the minor version of etcd 3: that of the tag of its image, or that of kubeadm (DefaultEtcdVersion in
// cmd/kubeadm/app/constants of Kubernetes 1.27 to 1.37).
func etcdMinor(tag string, v kubernetesVersion) int {
	const newerSince, older, newer = 34, 5, 6
	if m := regex.Of(`^v?3\.(\d+)\.`).FindStringSubmatch(tag); m != nil {
		minor, _ := strconv.Atoi(m[1]) // digits, by the pattern
		return minor
	}
	if v.minor >= newerSince {
		return newer
	}
	return older
}

// etcdLife returns the first and the last minor version of etcd 3 with a flag (CHANGELOG-3.5.md and CHANGELOG-3.6.md, and
// experimentalFlagMigrationMap in server/embed/config.go of etcd 3.6).
func etcdLife(flag string) (first, last int) {
	const always = 99
	switch {
	case flag == "debug" || flag == "log-package-levels":
		return 0, 4
	case flag == "enable-v2" || flag == "experimental-enable-v2v3" || flag == "proxy" || strings.HasPrefix(flag, "proxy-"):
		return 0, 5
	case slices.Contains(strings.Fields(`feature-gates compact-hash-check-time corrupt-check-time compaction-batch-limit watch-progress-notify-interval
		warning-apply-duration bootstrap-defrag-threshold-megabytes memory-mlock snapshot-catchup-entries compaction-sleep-interval
		downgrade-check-time peer-skip-client-san-verification enable-distributed-tracing distributed-tracing-address
		distributed-tracing-service-name distributed-tracing-instance-id distributed-tracing-sampling-rate`), flag):
		return 6, always
	}
	return 0, always
}

// etcdRules returns the rules for the values of etcd's flags, by flag. In etcd's own code, they are in Validate (server/embed/config.go),
// ConvertToZapLevel (client/pkg/logutil), GetTLSVersion and GetCipherSuite (client/pkg/tlsutil), and parseCompactionRetention (server/embed).
//
//nolint:gochecknoglobals // constant data, which is made when it is needed first
var etcdRules = sync.OnceValue(func() map[string]valueRule {
	const longestElection = 50000 // milliseconds
	rules := map[string]valueRule{
		"heartbeat-interval":          between(1, longestElection),
		"election-timeout":            between(1, longestElection),
		"auto-compaction-mode":        oneOf("periodic", "revision"),
		"auto-compaction-retention":   retention,
		"log-level":                   oneOf("debug", "info", "warn", "error", "dpanic", "panic", "fatal"),
		"logger":                      oneOf("zap"),
		"log-format":                  oneOf("json", "console"),
		"metrics":                     oneOf("basic", "extensive"),
		"backend-bbolt-freelist-type": oneOf("map", "array"),
		"tls-min-version":             oneOf("TLS1.2", "TLS1.3"),
		"tls-max-version":             oneOf("TLS1.2", "TLS1.3"),
		"cipher-suites":               listOf(oneOf(cipherSuites()...)),
		"initial-cluster-state":       oneOf("new", "existing"),
		"feature-gates":               listOf(etcdGate), // server/features/etcd_features.go of etcd 3.6
	}
	for _, name := range strings.Fields(`auth-token-ttl bcrypt-cost bootstrap-defrag-threshold-megabytes experimental-bootstrap-defrag-threshold-megabytes
		max-concurrent-streams max-request-bytes max-snapshots max-txn-ops max-wals self-signed-cert-validity snapshot-count`) {
		rules[name] = notNegative // flags of the type uint
	}
	for _, name := range []string{"listen-metrics-urls", "listen-client-urls", "listen-peer-urls", "listen-client-http-urls"} {
		rules[name] = listOf(bound)
	}
	for _, name := range []string{"advertise-client-urls", "initial-advertise-peer-urls"} {
		rules[name] = listOf(matching(`^(https?|unixs?)://[^/]+:\d+/?$`, "a URL such as https://10.0.0.1:2379"))
	}
	return rules
})

// etcdGate is the rule of an item of feature-gates of etcd.
func etcdGate(value string) string {
	name, on, is := strings.Cut(value, "=")
	if _, err := strconv.ParseBool(on); !is || err != nil {
		return fmt.Sprintf("%q is not a feature gate with true or false", value)
	}
	return oneOf(strings.Fields(`AllAlpha AllBeta CompactHashCheck InitialCorruptCheck LeaseCheckpoint LeaseCheckpointPersist SetMemberLocalAddr
		StopGRPCServiceOnDefrag TxnModeWriteWithSharedBuffer`)...)(name)
}

// retention is the rule of auto-compaction-retention: hours or revisions, or a duration.
func retention(value string) string {
	if n, err := strconv.Atoi(value); err == nil && n >= 0 {
		return ""
	}
	if _, err := time.ParseDuration(value); err == nil {
		return ""
	}
	return fmt.Sprintf("%q is neither a number nor a duration such as 8h", value)
}

// bound is the rule for a URL on which etcd listens: its host is an IP address or localhost (checkBindURLs).
func bound(value string) string {
	u, err := url.Parse(value)
	if err == nil && (u.Scheme == "unix" || u.Scheme == "unixs") {
		return ""
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" {
		return fmt.Sprintf("%q is not a URL such as http://0.0.0.0:2381", value)
	}
	if _, err := netip.ParseAddr(u.Hostname()); err != nil && u.Hostname() != "localhost" {
		return fmt.Sprintf("%q has a name, and etcd listens on IP addresses only", value)
	}
	return ""
}

// checkEtcdTogether compares arguments with each other, and files with what the container of etcd has: kubeadm mounts the folder of
// its certificates and that of its data (GetEtcdPodSpec in cmd/kubeadm/app/phases/etcd/local.go).
func (c *checks) checkEtcdTogether(o *manifest.Entry, path string, config *bootstrapv1.ClusterConfiguration) {
	const usualBeat, usualElection, beats = 100, 1000, 5 // milliseconds; kubeadm sets neither
	args := map[string]string{}
	folders := []string{boot.CertificatesDir(config) + "/etcd/", boot.EtcdDataDir(config) + "/"}
	for i, a := range config.Etcd.Local.ExtraArgs {
		value := manifest.Deref(a.Value)
		args[a.Name] = value
		inside := slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(value, folder) })
		if strings.HasSuffix(a.Name, "-file") && strings.HasPrefix(value, "/") && !inside {
			c.fail(
				o.Problem(
					argumentPath(o, path, i, a.Name),
					"etcd does not start: its container does not have the file "+value,
					"put it into "+strings.TrimSuffix(folders[0], "/")+" with files",
				),
			)
		}
	}
	beat, election := numberOf(args, "heartbeat-interval", usualBeat), numberOf(args, "election-timeout", usualElection)
	if election < beats*beat {
		c.fail(
			o.Problem(
				path,
				fmt.Sprintf("etcd does not start: election-timeout, %d, is less than %d times heartbeat-interval, %d", election, beats, beat),
				"change one of them",
			),
		)
	}
}
