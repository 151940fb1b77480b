package kubernetes

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Durations of machines, from when they run. There are no published figures; these are
// measurements with Cluster API's images.
const (
	// BootTakes is how long a machine takes until cloud-init has finished.
	BootTakes = 40 * time.Second
	// RebootTakes is how long a machine that was stopped takes until kubelet and the static pods run again.
	RebootTakes = 30 * time.Second
	// RestTakes is how long cloud-init takes after a script that waited for a connection.
	RestTakes = 10 * time.Second
	// InitTakes is how long kubeadm init takes until the API server responds.
	InitTakes = 60 * time.Second
	// JoinTakes is how long kubeadm join takes after the API server responds.
	JoinTakes = 20 * time.Second
	// EtcdTakes is how long a new etcd member delays the next one.
	EtcdTakes = 15 * time.Second
	// LearnerTakes is how long a new etcd member is a learner, at the end of JoinTakes.
	LearnerTakes = 5 * time.Second
	// JoinGivesUp is how long one kubeadm join tries.
	JoinGivesUp = 20 * time.Minute
)

// settleMachines boots machines, and lets them join their clusters.
func (svc *Service) settleMachines() {
	now := svc.Now()
	var all []*ec2.Instance
	due := false
	for i := range svc.EC2.Instances() {
		all = append(all, i)
		due = due || i.Boot == nil || i.Boot.Failed == "" && (i.Boot.Joined.IsZero() || !i.Terminating.IsZero() || i.Boot.Halted != svc.down(i))
	}
	if !due {
		svc.settleTokens()
		return
	}
	slices.SortStableFunc(all, func(x, y *ec2.Instance) int {
		return cmp.Or(x.Running.Compare(y.Running), cmp.Compare(x.Index, y.Index), strings.Compare(x.ID, y.ID))
	})
	for _, i := range all {
		switch {
		case !i.Terminating.IsZero():
			svc.unjoin(i)
		case i.Boot != nil && i.Boot.Halted != svc.down(i):
			svc.halt(i)
		case !i.Stopped.IsZero():
		case i.Boot == nil && !i.Running.IsZero() && now.Sub(i.Running) >= BootTakes && !svc.offline(i):
			i.Boot = svc.boot(i)
		}
	}
	svc.settleTokens()
	for again := true; again; { // after a control plane is ready, others can join
		again = false
		for _, i := range all {
			if b := i.Boot; b != nil && b.Failed == "" && b.Joined.IsZero() && i.Terminating.IsZero() && i.Stopped.IsZero() {
				again = svc.join(i, b) || again
			}
		}
	}
}

// nodeName returns the name of an instance's Node: its private DNS name.
func (svc *Service) nodeName(i *ec2.Instance) string {
	if i.Boot != nil && i.Boot.Named != "" && !strings.ContainsAny(i.Boot.Named, "{$") {
		return i.Boot.Named
	}
	if i.HostnameType == string(types.HostnameTypeResourceName) {
		return i.ID + "." + svc.EC2.Domain()
	}
	return "ip-" + strings.ReplaceAll(svc.address(i, ""), ".", "-") + "." + svc.EC2.Domain()
}

// join runs the attempt of a machine to join, if it is due, and reports whether it ended.
func (svc *Service) join(i *ec2.Instance, b *ec2.Boot) (ended bool) {
	begins := later(b.At, b.Retry)
	c, why, at := svc.clusters[b.Host], "", begins
	switch {
	case begins.After(svc.Now()):
		return false
	case c == nil:
		why = "no API server answers at " + b.Host
	case c.EKS != "":
		at, why = later(at, c.Up), svc.keptOut(i, c)
	default:
		at, why = svc.joinable(c, b, begins)
	}
	now, late := svc.Now(), begins.Add(JoinGivesUp)
	if why == ec2.FailedHash && !at.After(now) { // kubeadm does not wait for another CA
		return svc.failed(b, at, why)
	}
	at = svc.afterOtherMembers(b, c, at.Add(JoinTakes))
	if why == "" && !at.After(now) && b.Learns.IsZero() && c.EKS == "" && c.NodeReady(svc.nodeName(i)) {
		return svc.failed(b, at, ec2.FailedName)
	}
	if why == "" {
		at, why = svc.member(i, b, c, at)
	}
	if why == kubesim.NotItsData { // kubeadm has written the manifest of etcd: our script does not repeat that
		b.Tries, b.Failed = append(b.Tries, ec2.Try{At: at, Why: ec2.FailedMember}), ec2.FailedMember
		return false
	}
	switch {
	case why != "" && now.After(late):
		return svc.failed(b, late, why)
	case why == "" && at.After(late.Add(JoinTakes)):
		return svc.failed(b, late, "no API server answered in time")
	case why != "" || at.After(now):
		return false
	case i.JoinFails > 0:
		i.JoinFails--
		return svc.failed(b, at, ec2.FailedUnauthorized)
	}
	if why := joinRefused(c.ClusterConfiguration(), b.ControlPlane); why != "" && c.EKS == "" {
		return svc.failed(b, at, why)
	}
	if b.ControlPlane {
		if why := svc.serverStarts(i, b, c); why != "" {
			return svc.failed(b, at, why)
		}
	}
	b.Joined, b.Node = at, svc.nodeName(i)
	c.TwoTags = c.TwoTags || b.ControlPlane && hasTwoTags(i)
	c.Join(at, svc.machineOf(i, b))
	return true
}

// serverStarts returns why the API server of a machine that joins does not start.
func (svc *Service) serverStarts(i *ec2.Instance, b *ec2.Boot, c *kubesim.Cluster) string {
	config := c.ClusterConfiguration()
	files, err := svc.filesOf(i)
	if err != nil {
		return err.Error()
	}
	return cmp.Or(externalEtcdOf(config).refused(files), serverRefuses(config, b.Advertised))
}

// member makes a machine of the control plane, which joins at a time if nothing is in the way, a
// learner of etcd, and reports when or why not it becomes a voter. It stays a learner while etcd
// refuses to promote it.
func (svc *Service) member(i *ec2.Instance, b *ec2.Boot, c *kubesim.Cluster, at time.Time) (joins time.Time, why string) {
	if !b.ControlPlane || c.EKS != "" || c.ExternalEtcd {
		return at, ""
	}
	now := svc.Now()
	if b.Learns.IsZero() {
		begins := at.Add(-LearnerTakes)
		if begins.After(now) {
			return at, ""
		}
		if why := c.AddLearner(begins, svc.nodeName(i), svc.machineOf(i, b).Advertised); why != "" {
			return at, why
		}
		b.Learns, b.Node = begins, svc.nodeName(i)
	}
	if at = later(at, b.Learns.Add(LearnerTakes)); at.After(now) {
		return at, ""
	}
	return at, c.MayPromote(now, svc.nodeName(i))
}

// failed ends an attempt to join. The machine makes another one if its boot data has a
// script for that, until the time of the script is over.
func (svc *Service) failed(b *ec2.Boot, at time.Time, why string) (ended bool) {
	b.Tries = append(b.Tries, ec2.Try{At: at, Why: why})
	if at.Sub(b.At) >= b.RepeatsFor {
		b.Failed = why
	}
	b.Retry = at.Add(time.Duration(min(len(b.Tries), 4)) * 15 * time.Second)
	return b.Failed == ""
}

// afterOtherMembers returns when a machine that is due at the given time joins: etcd adds
// one member at a time.
func (svc *Service) afterOtherMembers(b *ec2.Boot, c *kubesim.Cluster, at time.Time) time.Time {
	if c == nil || !b.ControlPlane || c.EKS != "" || c.ExternalEtcd {
		return at
	}
	for other := range svc.EC2.Instances() {
		if o := other.Boot; o != nil && o.ControlPlane && o.Host == b.Host && !o.Joined.IsZero() {
			at = later(at, o.Joined.Add(EtcdTakes))
		}
	}
	return at
}

// repeatsJoin finds, in the files of a machine, the script that repeats kubeadm join, and
// for how long it does.
func repeatsJoin(b *ec2.Boot, files map[string]string, text string) {
	for path, script := range files {
		limit := regex.Of(`(?m)^LIMIT=(\d+)$`).FindStringSubmatch(script)
		if limit == nil || !strings.HasSuffix(path, "/kubeadm-join.sh") || !strings.Contains(text+files["/etc/kubeadm.sh"], "bash "+path) {
			continue
		}
		seconds, _ := strconv.Atoi(limit[1]) // digits, by the pattern
		b.RepeatsFor = time.Duration(seconds) * time.Second
	}
}

// joinable returns from when a machine whose attempt begins at a time can join with its
// boot data, or why it cannot.
func (svc *Service) joinable(c *kubesim.Cluster, b *ec2.Boot, begins time.Time) (from time.Time, why string) {
	from = later(begins, c.Up)
	ready, ok := svc.reaches(b.Host, c)
	if from = later(from, ready); !ok {
		return from, "nothing behind the load balancer answers"
	}
	if !c.Quorate() {
		return from, "etcd has lost its quorum"
	}
	if b.ControlPlane && !c.Whole() && !c.HasPeer(b.Advertised) {
		return from, "etcdserver: unhealthy cluster"
	}
	if !slices.Contains(b.Hashes, authorityHash(c.CA)) {
		return from, ec2.FailedHash
	}
	if !c.TokenValid(b.Token, later(from, svc.Now())) {
		return from, ec2.FailedToken
	}
	return from, ""
}

// hasTwoTags reports whether a machine has the tags of two clusters. The AWS cloud controller manager on such a machine ends with the error "Found
// multiple cluster tags" (findClusterIDs in pkg/providers/v1/tags.go of k8s.io/cloud-provider-aws).
func hasTwoTags(i *ec2.Instance) bool {
	n := 0
	for key := range i.Tags {
		if strings.HasPrefix(key, "kubernetes.io/cluster/") {
			n++
		}
	}
	return n > 1
}

func (svc *Service) machineOf(i *ec2.Instance, b *ec2.Boot) kubesim.Machine {
	cpus, memory := svc.EC2.SizeOf(i.Type)
	return kubesim.Machine{
		Name: svc.nodeName(i), IP: svc.address(i, b.NodeIP), Advertised: b.Advertised, ProviderID: "aws:///" + i.Zone + "/" + i.ID, Version: b.Version,
		ControlPlane: b.ControlPlane, Local: !b.External, Labels: b.Labels, Taints: b.Taints, MaxPods: b.MaxPods,
		CPUs: cpus, MemoryMiB: memory, Sysctls: b.Sysctls,
	}
}

const terminated = "terminated"

// unjoin applies the termination of a machine to its cluster, once: another machine may get its
// address, and so the name of its Node.
func (svc *Service) unjoin(i *ec2.Instance) {
	if i.Boot == nil || i.Boot.Failed == terminated || i.Boot.Joined.IsZero() && i.Boot.Learns.IsZero() {
		return
	}
	i.Boot.Failed = terminated
	c := svc.clusters[i.Boot.Host]
	if c == nil {
		return
	}
	c.Lose(svc.Now(), i.Boot.Node)
	if c.EKS == "" && !svc.hasData(i.Boot.Host) {
		delete(svc.clusters, i.Boot.Host)
	}
}

// down reports whether a machine is stopped, or has not booted again since.
func (svc *Service) down(i *ec2.Instance) bool {
	return !i.Stopped.IsZero() || !i.Started.IsZero() && svc.Now().Before(i.Started.Add(ec2.InstanceTakes+RebootTakes))
}

// halt applies to its cluster that a machine was stopped, or started again.
func (svc *Service) halt(i *ec2.Instance) {
	i.Boot.Halted = !i.Boot.Halted
	c := svc.clusters[i.Boot.Host]
	switch {
	case c == nil || i.Boot.Node == "":
	case i.Boot.Halted:
		c.Hang(svc.Now(), i.Boot.Node)
	default:
		c.Resume(svc.Now(), i.Boot.Node)
	}
}

// hasData reports whether a machine has the data of the cluster at a host: a member of its etcd that
// was not terminated.
func (svc *Service) hasData(host string) bool {
	for i := range svc.EC2.Instances() {
		if b := i.Boot; b != nil && b.ControlPlane && b.Host == host && b.Failed == "" && !b.Joined.IsZero() && i.Terminating.IsZero() {
			return true
		}
	}
	return false
}

// reaches returns from when a load balancer or another name leads to an API server of the
// cluster.
func (svc *Service) reaches(host string, c *kubesim.Cluster) (from time.Time, ok bool) {
	serves := func(id string) bool {
		i := svc.EC2.Instance(id)
		return i != nil && i.Terminating.IsZero() && !svc.down(i) && i.Boot != nil && i.Boot.ControlPlane && svc.clusters[i.Boot.Host] == c &&
			!i.Boot.Joined.IsZero() &&
			!slices.Contains(c.Left, i.Boot.Node)
	}
	if from, ok, exists := svc.ELB.Forwards(host, serves); exists {
		return from, ok
	}
	return c.Up, true
}

func later(x, y time.Time) time.Time {
	if y.After(x) {
		return y
	}
	return x
}

// authorityHash returns the CA hash for kubeadm discovery.
func authorityHash(ca []byte) string {
	block, _ := pem.Decode(ca)
	if block == nil {
		return ""
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}
