package kubesim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Member is an etcd member on the Node with the same name.
type Member struct {
	Name, IP string
	ID       uint64
	Learner  bool
	Added    time.Time // when kubeadm join added it as a learner; zero: it has always been a voter
	Gone     bool      // its machine does not run any more: the member counts, but does not answer
	Back     time.Time // when it answered again after it had been down
	Nameless bool      // it was lost before its etcd had started: its name is not known
}

// StartTakes is how long the etcd of a new member takes to start and to publish its name.
const StartTakes = 2 * time.Second

// started reports whether a member has published its name.
func (m *Member) started(now time.Time) bool {
	return !m.Nameless && (m.Added.IsZero() || now.Sub(m.Added) >= StartTakes)
}

// HealthInterval is how long a member has to be connected to the others before etcd counts it as active
// in its checks of changes (HealthInterval in etcdserver/server.go of etcd v3.6.5).
const HealthInterval = 5 * time.Second

// active reports whether a member counts as active. The real etcd also counts the member that answers the
// request, whenever it started; this one is stricter.
func (m *Member) active(now time.Time) bool {
	return !m.Gone && now.Sub(m.Back) >= HealthInterval && (m.Added.IsZero() || now.Sub(m.Added) >= StartTakes+HealthInterval)
}

// addMember makes a control-plane machine a voting member of etcd: the first one, or the learner
// that kubeadm join has added.
func (c *Cluster) addMember(m Machine) {
	c.Left = slices.DeleteFunc(c.Left, func(name string) bool { return name == m.Name }) // a machine of that name was here before
	if have := c.member(m.Name); have != nil {
		have.Learner = false
		return
	}
	c.Members = append(c.Members, newMember(m.Name, m.Advertised))
	if c.Leader == 0 {
		c.Leader = c.Members[0].ID
	}
}

// url returns a URL with the address of a member.
func (m *Member) url(port string) string { return "https://" + net.JoinHostPort(m.IP, port) }

// loopback is the address on which etcd listens for its own Node: of the same family as
// its other address (kubeadm's phases/etcd/local.go).
func (m *Member) loopback() string {
	if strings.Contains(m.IP, ":") {
		return "[::1]"
	}
	return "127.0.0.1"
}

func newMember(name, ip string) *Member {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name + "/" + ip))
	return &Member{Name: name, IP: ip, ID: h.Sum64()}
}

// AddLearner is the MemberAdd of kubeadm join: it adds a learner, or says why etcd refuses it. The
// checks are those of etcd v3.6.5: mayAddMember in etcdserver/server.go with StrictReconfigCheck,
// and ValidateMaxLearnerConfig in etcdserver/api/membership/cluster.go with the default of one
// learner. kubeadm v1.34.2 goes on with a member that has its peer URL (addMember in
// cmd/kubeadm/app/util/etcd/etcd.go).
func (c *Cluster) AddLearner(now time.Time, name, ip string) (refused string) {
	switch {
	case !c.Quorate():
		return "etcdserver: request timed out"
	case slices.ContainsFunc(c.Members, func(m *Member) bool { return m.IP == ip && m.Gone && m.Nameless }):
		c.begin(now, name, ip)
		return ""
	case slices.ContainsFunc(c.Members, func(m *Member) bool { return m.IP == ip && m.Gone }):
		return NotItsData
	case slices.ContainsFunc(c.Members, func(m *Member) bool { return m.IP == ip }):
		return ""
	case slices.ContainsFunc(c.Members, func(m *Member) bool { return !m.Learner && !m.active(now) }):
		return "etcdserver: unhealthy cluster"
	case slices.ContainsFunc(c.Members, func(m *Member) bool { return m.Learner }):
		return "etcdserver: too many learner members in cluster"
	}
	m := newMember(name, ip)
	m.Learner, m.Added = true, now
	c.Members = append(c.Members, m)
	return ""
}

// begin lets a new machine be the learner that a lost one with its address has added: that has no data yet.
func (c *Cluster) begin(now time.Time, name, ip string) {
	for _, m := range c.Members {
		if m.IP == ip {
			m.Name, m.Added, m.Gone, m.Nameless = name, now, false, false
		}
	}
}

// NotItsData is the panic of an etcd that starts without data as a member that had some: kubeadm join adds
// no member if one has the peer URL, which a new machine with the address of a lost one has (commitTo
// in log.go of go.etcd.io/raft v3.6.0).
const NotItsData = "etcd: tocommit is out of range [lastIndex(0)]. Was the raft log corrupted, truncated, or lost?"

// MayPromote is the check of the MemberPromote of kubeadm join: the learner has to be in sync with
// the leader, and the voters have to be a quorum (mayPromoteMember in etcdserver/server.go).
func (c *Cluster) MayPromote(now time.Time, name string) (refused string) {
	m := c.member(name)
	switch {
	case !c.Quorate():
		return "etcdserver: request timed out"
	case m == nil:
		return "etcdserver: member not found"
	case m.Learner && (m.Gone || !m.started(now)):
		return "etcdserver: can only promote a learner member which is in sync with leader"
	}
	return ""
}

func (c *Cluster) member(name string) *Member {
	for _, m := range c.Members {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// Quorate reports whether etcd has a quorum. Without one, an API server cannot even read.
// In an EKS cluster etcd is not visible, and an external one always answers.
func (c *Cluster) Quorate() bool {
	voting, up := 0, 0
	for _, m := range c.Members {
		if !m.Learner {
			voting++
			if !m.Gone {
				up++
			}
		}
	}
	return c.EKS != "" || c.ExternalEtcd || up > voting/2
}

// Whole reports whether all voting members of etcd run. Otherwise etcd's strict
// reconfiguration check accepts no new member, not even a learner ("unhealthy cluster").
func (c *Cluster) Whole() bool {
	return !slices.ContainsFunc(c.Members, func(m *Member) bool { return !m.Learner && m.Gone })
}

// HasPeer reports whether a member has an address: kubeadm join asks for that before it adds a member.
func (c *Cluster) HasPeer(ip string) bool {
	return slices.ContainsFunc(c.Members, func(m *Member) bool { return m.IP == ip })
}

// unwell sets the status of the etcd pod of a member that does not run.
func (c *Cluster) unwell(name string) {
	if etcd := c.Objects["/api/v1/namespaces/kube-system/pods/etcd-"+name]; etcd != nil {
		etcd["status"] = Object{"phase": "Running", "conditions": []any{Object{"type": "Ready", "status": "False"}}}
	}
}

// elect chooses another leader when the leader is gone.
func (c *Cluster) elect() {
	if i := slices.IndexFunc(c.Members, func(m *Member) bool { return m.ID == c.Leader }); i >= 0 && !c.Members[i].Gone {
		return
	}
	for _, m := range c.Members {
		if !m.Learner && !m.Gone {
			c.Leader = m.ID
			return
		}
	}
}

// etcdctl returns the output of etcdctl on a Node, and whether it succeeded.
func (c *Cluster) etcdctl(now time.Time, node string, args []string) (printed string, ok bool) {
	flags, words := readArgs(args)
	for _, f := range []string{"--cacert", "--cert", "--key"} {
		if flags[f] == "" {
			return "Error: tls: bad certificate\n", false
		}
	}
	at := c.endpoint(node, flags["--endpoints"])
	if at == nil || at.Gone {
		return "Error: context deadline exceeded\n", false
	}
	if !c.Quorate() {
		return "Error: etcdserver: request timed out\n", false
	}
	return c.answer(now, at, flags, words)
}

// readArgs separates flags and words.
func readArgs(args []string) (flags map[string]string, words []string) {
	flags = map[string]string{}
	for i := 1; i < len(args); i++ {
		switch name, value, set := strings.Cut(args[i], "="); {
		case set:
			flags[name] = value
		case args[i] == "-w" && i+1 < len(args):
			i++
			flags["-w"] = args[i]
		default:
			words = append(words, args[i])
		}
	}
	return flags, words
}

// answer returns the answer of a member.
func (c *Cluster) answer(now time.Time, at *Member, flags map[string]string, words []string) (printed string, ok bool) {
	c.elect()
	warning := `{"level":"warn","msg":"a line that is none of the answer"}` + "\n" // a line of the client's log
	switch what := strings.Join(words[:min(2, len(words))], " "); {
	case what == "member list" && flags["-w"] == "json":
		return warning + c.printMembers(now, at), true
	case what == "endpoint status" && flags["-w"] == "json":
		return fmt.Sprintf(`[{"Endpoint":%q,"Status":{"header":{"member_id":%d},"leader":%d}}]`+"\n", flags["--endpoints"], at.ID, c.Leader), true
	case what == "member remove" && len(words) == 3:
		return c.removeMember(now, words[2])
	case len(words) == 2 && words[0] == "move-leader":
		return c.moveLeader(at, words[1])
	}
	return "Error: not simulated: " + strings.Join(words, " ") + "\n", false
}

// endpoint returns the member at a URL, as seen from a Node.
func (c *Cluster) endpoint(node, url string) *Member {
	for _, m := range c.Members {
		if url == "https://"+m.loopback()+":2379" && m.Name == node || url == m.url("2379") {
			return m
		}
	}
	return nil
}

func (c *Cluster) printMembers(now time.Time, at *Member) string {
	type member struct {
		ID         uint64   `json:"ID"`
		Name       string   `json:"name,omitempty"`
		PeerURLs   []string `json:"peerURLs"`
		ClientURLs []string `json:"clientURLs,omitempty"`
		IsLearner  bool     `json:"isLearner,omitempty"`
	}
	var all []member
	for _, m := range c.Members {
		shown := member{ID: m.ID, PeerURLs: []string{m.url("2380")}, IsLearner: m.Learner}
		if m.started(now) {
			shown.Name, shown.ClientURLs = m.Name, []string{m.url("2379")}
		}
		all = append(all, shown)
	}
	text, _ := json.Marshal(map[string]any{"members": all}) //nolint:errchkjson // strings and numbers
	return fmt.Sprintf(`{"header":{"cluster_id":1,"member_id":%d,"raft_term":2},%s`+"\n", at.ID, text[1:])
}

func (c *Cluster) byHex(hex string) int {
	id, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		return -1
	}
	return slices.IndexFunc(c.Members, func(m *Member) bool { return m.ID == id })
}

// removeMember removes a member, unless etcd's strict reconfiguration check forbids it
// (mayRemoveMember in etcdserver/server.go of etcd v3.6.5): a learner and a member that is down may
// always be removed; a voter that runs only if the voters that run without it are a quorum of the
// others. The last voter is never removed.
func (c *Cluster) removeMember(now time.Time, hex string) (string, bool) {
	i := c.byHex(hex)
	if i < 0 {
		return "Error: etcdserver: member not found\n", false
	}
	voting, up := 0, 0
	for _, m := range c.Members {
		if !m.Learner {
			voting++
			if m.active(now) {
				up++
			}
		}
	}
	switch m := c.Members[i]; {
	case m.Learner:
	case voting == 1:
		return "Error: etcdserver: re-configuration failed due to not enough started members\n", false
	case !m.Gone && up-1 < 1+(voting-1)/2:
		return "Error: etcdserver: unhealthy cluster\n", false
	}
	c.Left = append(c.Left, c.Members[i].Name)
	c.unwell(c.Members[i].Name)
	c.Members = slices.Delete(c.Members, i, i+1)
	c.elect()
	return "Member " + hex + " removed from cluster\n", true
}

func (c *Cluster) moveLeader(at *Member, hex string) (string, bool) {
	i := c.byHex(hex)
	switch {
	case at.ID != c.Leader:
		return "Error: no leader endpoint given\n", false
	case i < 0 || c.Members[i].Learner || c.Members[i].Gone:
		return "Error: etcdserver: bad leader transferee\n", false
	}
	c.Leader = c.Members[i].ID
	return "Leadership transferred\n", true
}

// toolTakes is the duration of a pod that runs etcdctl.
const toolTakes = 3 * time.Second

// settleTools runs pods with etcdctl. They need the network of an existing Node and the
// etcd certificates on it.
func (c *Cluster) settleTools(now time.Time) {
	for _, path := range c.paths("Pod") {
		o := c.Objects[path]
		containers := list(o, "spec", "containers")
		if len(containers) == 0 || text(o, "status", "phase") != "" || text(o, "spec", "restartPolicy") != "Never" {
			continue
		}
		born := instant(o, "metadata", "creationTimestamp")
		node := c.Objects["/api/v1/nodes/"+text(o, "spec", "nodeName")]
		if node == nil || unreachable(node) || now.Sub(born) < toolTakes {
			continue
		}
		phase, logs := "Succeeded", map[string]string{}
		initial := list(o, "spec", "initContainers")
		for n, x := range append(initial, containers...) {
			printed, ok := c.runTool(now, o, x)
			logs[text(x, "name")] = printed
			if !ok {
				phase = "Failed"
				if n < len(initial) { // the next container starts only after it; the others run side by side ("Init Containers", Kubernetes)
					break
				}
			}
		}
		o["status"] = Object{"phase": phase}
		c.Logs[path] = logs
		c.put(path, o, now)
	}
}

func (c *Cluster) runTool(now time.Time, pod, container Object) (printed string, ok bool) {
	var args []string
	raw, _ := container["command"].([]any)
	for _, a := range raw {
		s, _ := a.(string)
		args = append(args, s)
	}
	node := text(pod, "spec", "nodeName")
	hostNetwork, _ := value(pod, "spec", "hostNetwork").(bool)
	etcd := list(c.Objects["/api/v1/namespaces/kube-system/pods/etcd-"+node], "spec", "containers")
	mounted := false
	for _, v := range list(pod, "spec", "volumes") {
		mounted = mounted || text(v, "hostPath", "path") == "/etc/kubernetes/pki/etcd"
	}
	switch {
	case len(args) == 0 || args[0] != "etcdctl":
		return fmt.Sprintf("not simulated: %q", args), false
	case len(etcd) == 0 || text(etcd[0], "image") != text(container, "image"):
		return "not simulated: image " + text(container, "image"), false
	case !hostNetwork, !mounted:
		return "Error: context deadline exceeded\n", false
	}
	return c.etcdctl(now, node, args)
}

// log returns the output of a container.
func (c *Cluster) log(at place, container string) (int, any) {
	pod := c.Objects[at.full()]
	if pod == nil {
		return missing(at)
	}
	printed, ok := c.Logs[at.full()][container]
	if !ok {
		return failure(400, "BadRequest", fmt.Sprintf("container %q in pod %q is waiting to start", cmp.Or(container, "?"), at.name))
	}
	return 200, Text(printed)
}

// Text is a response that is not JSON.
type Text string

// list returns the objects in a list of an object.
func list(o Object, path ...string) (out []Object) {
	all, _ := value(o, path...).([]any)
	for _, x := range all {
		if x, ok := x.(Object); ok {
			out = append(out, x)
		}
	}
	return out
}
