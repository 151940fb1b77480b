package kubernetes

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// etcdChoices lists flags of etcd that take one of a few values, each with these values (etcd --help).
const etcdChoices = `
auto-compaction-mode periodic revision
backend-bbolt-freelist-type array map
initial-cluster-state new existing
log-format json console
log-level debug info warn error dpanic panic fatal
logger zap
metrics basic extensive
tls-max-version TLS1.2 TLS1.3
tls-min-version TLS1.2 TLS1.3
`

// etcdRemoved lists flags that etcd has removed, each with the last minor version of etcd 3 that has it. etcdAdded lists flags that etcd
// has added, each with the first minor version that has it (https://github.com/etcd-io/etcd/tree/main/CHANGELOG).
const (
	etcdRemoved = `debug 4 log-package-levels 4 enable-v2 5 experimental-enable-v2v3 5 proxy 5 proxy-dial-timeout 5 proxy-failure-wait 5
		proxy-read-timeout 5 proxy-refresh-interval 5 proxy-write-timeout 5`
	etcdAdded = `bootstrap-defrag-threshold-megabytes 6 compact-hash-check-time 6 compaction-batch-limit 6 compaction-sleep-interval 6
		corrupt-check-time 6 distributed-tracing-address 6 distributed-tracing-instance-id 6 distributed-tracing-sampling-rate 6
		distributed-tracing-service-name 6 downgrade-check-time 6 enable-distributed-tracing 6 feature-gates 6 memory-mlock 6
		peer-skip-client-san-verification 6 snapshot-catchup-entries 6 warning-apply-duration 6 watch-progress-notify-interval 6`
)

// numberAfter returns the number after a word; -1 if the word is not there.
func numberAfter(word, text string) int {
	words := strings.Fields(text)
	at := slices.Index(words, word)
	if at < 0 {
		return -1
	}
	n, err := strconv.Atoi(words[at+1])
	if err != nil {
		return -1
	}
	return n
}

// etcdRefused returns why an etcd of kubeadm does not start with these arguments; "" if it does. tag is the tag of its image. keys is the
// folder of certificates, and data that of its data: its container has no other folders of the machine.
func etcdRefused(args any, tag, version, keys, data string) string {
	release := 5
	if minorOf(version) >= 34 { // kubeadm's constants: 3.6.4-0
		release = 6
	}
	if m := regex.Of(`^v?3\.(\d+)\.`).FindStringSubmatch(tag); m != nil {
		release, _ = strconv.Atoi(m[1])
	}
	times := map[string]float64{"heartbeat-interval": 100, "election-timeout": 1000}
	for _, arg := range pairs(args) {
		name, value := arg[0], arg[1]
		last, first := numberAfter(name, etcdRemoved), numberAfter(name, etcdAdded)
		if !slices.Contains(words("flags etcd"), name) || last >= 0 && release > last || release < first {
			return "etcd: flag provided but not defined: -" + name
		}
		if _, timed := times[name]; timed || name == "quota-backend-bytes" {
			n, err := strconv.ParseInt(value, 0, 64)
			if err != nil {
				return fmt.Sprintf("etcd: invalid value %q for flag -%s: parse error", value, name)
			}
			times[name] = float64(n)
		}
		if name == "initial-cluster-state" && value == "existing" {
			return "etcd: cannot fetch cluster info from peer urls: could not retrieve cluster information from the given URLs"
		}
		if why := cmp.Or(etcdValueRefused(name, value), replacedEtcd(name, value, data)); why != "" {
			return "etcd: " + why
		}
		if strings.HasSuffix(name, "-file") && strings.HasPrefix(value, "/") && !strings.HasPrefix(value, keys+"/etcd/") && !strings.HasPrefix(value, data+"/") {
			return fmt.Sprintf("etcd: open %s: no such file or directory", value)
		}
	}
	switch beat, election := times["heartbeat-interval"], times["election-timeout"]; {
	case beat <= 0 || election <= 0:
		return "etcd: --heartbeat-interval and --election-timeout must be >0"
	case beat*5 > election:
		return "etcd: --election-timeout should be at least as 5 times as --heartbeat-interval"
	case election > 50000:
		return "etcd: --election-timeout is too long, and should be set less than 50000ms"
	}
	return ""
}

// etcdVariablesRefused returns why etcd does not take variables: each ETCD_FLAG_NAME sets the flag that is not among its arguments (SetFlagsFromEnv in
// pkg/flags of etcd). kubeadm's own arguments are there always.
func etcdVariablesRefused(env []variable, args any) string {
	given := strings.Fields("advertise-client-urls cert-file client-cert-auth data-dir initial-advertise-peer-urls initial-cluster key-file " +
		"listen-client-urls listen-metrics-urls listen-peer-urls name peer-cert-file peer-client-cert-auth peer-key-file peer-trusted-ca-file trusted-ca-file snapshot-count")
	for _, arg := range pairs(args) {
		given = append(given, arg[0])
	}
	for _, v := range env {
		name, is := strings.CutPrefix(v.Name, "ETCD_")
		if name = strings.ToLower(
			strings.ReplaceAll(name, "_", "-"),
		); !is || v.Value == "" || slices.Contains(given, name) ||
			!slices.Contains(words("flags etcd"), name) {
			continue
		}
		why := etcdValueRefused(name, v.Value)
		if _, err := strconv.ParseInt(
			v.Value,
			0,
			64,
		); err != nil &&
			slices.Contains(strings.Fields("heartbeat-interval election-timeout quota-backend-bytes"), name) {
			why = "parse error"
		}
		if why != "" {
			return fmt.Sprintf("etcd: invalid value %q for %s: %s", v.Value, v.Name, why)
		}
	}
	return ""
}

// etcdValueRefused returns why etcd does not take a value of a flag.
func etcdValueRefused(name, value string) string {
	for line := range strings.SplitSeq(etcdChoices, "\n") {
		if w := strings.Fields(line); len(w) > 1 && w[0] == name && !slices.Contains(w[1:], value) {
			return fmt.Sprintf("unknown value %q for --%s", value, name)
		}
	}
	switch {
	case name == "auto-compaction-retention":
		_, number := strconv.Atoi(value)
		if _, err := time.ParseDuration(value); number != nil && err != nil {
			return "error parsing CompactionRetention: " + err.Error()
		}
	case name == "cipher-suites":
		older := []string{"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"} // GetCipherSuite in client/pkg/tlsutil of etcd
		for suite := range strings.SplitSeq(value, ",") {
			if !slices.Contains(older, suite) && !slices.ContainsFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool { return s.Name == suite }) &&
				!slices.ContainsFunc(tls.InsecureCipherSuites(), func(s *tls.CipherSuite) bool { return s.Name == suite }) {
				return "unexpected TLS cipher suite " + suite
			}
		}
	case regex.Of(`^listen-.*-urls$`).MatchString(name):
		for one := range strings.SplitSeq(value, ",") {
			u, err := url.Parse(one)
			if err != nil || !slices.Contains([]string{"http", "https", "unix", "unixs"}, u.Scheme) {
				return "URL scheme must be http, https, unix, or unixs: " + one
			}
			if host := u.Hostname(); u.Scheme[0] == 'h' && (net.ParseIP(host) == nil && host != "localhost" || u.Port() == "") {
				return "expected IP in URL for binding (" + one + ")"
			}
		}
	}
	return ""
}
