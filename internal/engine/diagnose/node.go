package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// Node returns the diagnosis of a machine that has not become a ready Node.
func Node(n *incluster.Node) graph.Diagnosis {
	return func(ctx context.Context, c *cloud.Clients) (findings []string, look string) {
		return checkNode(ctx, c, n)
	}
}

func checkNode(ctx context.Context, c *cloud.Clients, n *incluster.Node) (findings []string, look string) {
	q := newMachineCheck(c, n.Machine, n.Parts)
	if q == nil {
		return nil, ""
	}
	return (&nodeCheck{machineCheck: q, api: n.API, external: n.External, parts: n.Parts}).check(ctx)
}

// PoolNodes returns the diagnosis of a pool whose machines have not all become ready Nodes: that of
// one machine, since all have the same boot data.
func PoolNodes(n *incluster.PoolNodes) graph.Diagnosis {
	return func(ctx context.Context, c *cloud.Clients) (findings []string, look string) {
		s, err := n.Find(ctx, c)
		if s == nil || err != nil {
			return nil, ""
		}
		m, ok := s.First()
		if !ok {
			return nil, ""
		}
		return (&nodeCheck{machineCheck: &machineCheck{c: c, machine: m.InstanceState}, api: n.API, external: n.External}).check(ctx)
	}
}

// NodeGroup returns the diagnosis of a node group whose nodes have not all become ready, also after EKS has given up. It diagnoses one machine
// that has not joined or is not ready.
func NodeGroup(api *incluster.API, of func() (eks.NodeGroupState, bool)) graph.Diagnosis {
	return func(ctx context.Context, c *cloud.Clients) (findings []string, look string) {
		group, ok := of()
		if !ok {
			return nil, ""
		}
		m, ok := incluster.LateMachine(ctx, c, api, group)
		if !ok {
			return nil, ""
		}
		return (&nodeCheck{machineCheck: &machineCheck{c: c, machine: m}, api: api}).check(ctx)
	}
}

// Group returns the diagnosis of an Auto Scaling group whose machines are being replaced: that of
// a new machine without a ready Node.
func Group(api *incluster.API, of func() (autoscaling.GroupState, bool)) graph.Diagnosis {
	return func(ctx context.Context, c *cloud.Clients) (findings []string, look string) {
		group, ok := of()
		if id := group.FirstLate(); ok && id != "" {
			if inventory, err := ec2.InstanceInventory(ctx, c); err == nil && inventory.OfGroups[id] != nil {
				return (&nodeCheck{machineCheck: &machineCheck{c: c, machine: *inventory.OfGroups[id]}, api: api}).check(ctx)
			}
		}
		return nil, ""
	}
}

// nodeCheck looks for the reason why the Node of a machine does not exist, or is not
// ready.
type nodeCheck struct {
	*machineCheck
	api      *incluster.API
	external bool // a cloud controller manager initializes the Node
	parts    bool // components of the control plane run on it
	k        *kube.Client
	all      *incluster.NodeList
	node     *incluster.NodeState // nil: it has not joined
}

func (w *nodeCheck) check(ctx context.Context) (findings []string, look string) {
	q := w.machineCheck
	k, err := w.api.Client(q.c)
	all, listErr := incluster.Nodes(ctx, q.c, w.api)
	if err != nil || listErr != nil || k == nil {
		q.checkBoot(ctx)
		q.run(ctx, func(context.Context) (string, error) {
			return "the API server, which answered before, does not now: repair it first", nil
		})
		return q.result(ctx)
	}
	w.k, w.all, w.node = k, all, all.Of(q.machine)
	if w.node == nil {
		if q.run(ctx, w.deleted); len(q.found) == 0 {
			q.checkBoot(ctx)
			q.run(ctx, w.token, w.requests, w.otherNode)
		} else {
			q.ended = true // as below
		}
		return q.result(ctx)
	}
	q.run(ctx, q.state, w.pods, w.network, w.controller, w.notReady)
	q.ended = true // it has booted: the console output is not needed
	findings, _ = q.result(ctx)
	return findings, "kubectl describe node " + w.node.Name
}

// deleted finds a machine that has joined, as kubeadm says at the end of kubeadm join, and whose Node somebody has deleted since. The kubelet
// registers only when it starts (registerWithAPIServer in pkg/kubelet/kubelet_node_status.go of Kubernetes v1.34.2).
func (w *nodeCheck) deleted(ctx context.Context) (string, error) {
	lines, err := w.consoleText(ctx)
	if err != nil || !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "This node has joined the cluster") }) {
		return "", nil //nolint:nilerr // without the console, the other checks say so
	}
	return fmt.Sprintf(
		"%s has joined the cluster, as its console says, and its Node is gone: somebody has deleted it. The kubelet registers only when it starts: "+
			"restart it ('clusterawsadm cluster exec %[2]s %[1]s -- systemctl restart kubelet'), or %[3]s",
		w.machine.ID,
		w.c.Cluster,
		w.replaceIt(),
	), nil
}

// pods finds pods that do not run: those of the pod network or of the cloud controller manager may be among them.
func (w *nodeCheck) pods(ctx context.Context) (string, error) {
	lines, err := incluster.Troubles(ctx, w.k, "", false)
	return strings.Join(lines, "; "), err
}

// network finds a Node that waits for a pod network.
func (w *nodeCheck) network(context.Context) (string, error) {
	message := strings.ToLower(w.node.Message)
	if w.node.Ready || !strings.Contains(message, "cni") && !strings.Contains(message, "network plugin") {
		return "", nil
	}
	return fmt.Sprintf(
		"node %s is not ready: %q. The cluster has no pod network, or its pods do not run on this node: install one with kubectl, or with --cni FILE (kubectl get pods -A -o wide --field-selector spec.nodeName=%s)",
		w.node.Name,
		shortLine(w.node.Message),
		w.node.Name,
	), nil
}

// controller finds a Node that waits for a cloud controller manager.
func (w *nodeCheck) controller(context.Context) (string, error) {
	if !w.external || w.node.ProviderID != "" && !w.node.Uninitialized {
		return "", nil
	}
	has := "no provider ID"
	if w.node.Uninitialized {
		has += ", and the taint node.cloudprovider.kubernetes.io/uninitialized"
	}
	return fmt.Sprintf(
		"node %s has %s: its kubelet has cloud-provider: external, and no AWS cloud controller manager has initialized it. Install one (kubectl get pods -A | grep cloud-controller; its log names missing permissions)",
		w.node.Name,
		has,
	), nil
}

// notReady finds a Node that is not ready for other reasons.
func (w *nodeCheck) notReady(context.Context) (string, error) {
	switch {
	case w.node.Unreachable:
		return fmt.Sprintf(
			"the kubelet of node %s does not report any more (%s): %s hangs, or has lost its network",
			w.node.Name,
			shortLine(w.node.Message),
			w.machine.ID,
		), nil
	case !w.node.Ready && len(w.found) == 0:
		return fmt.Sprintf("node %s is not ready: %q (kubectl describe node %s)", w.node.Name, shortLine(w.node.Message), w.node.Name), nil
	case w.parts && len(w.found) == 0:
		return fmt.Sprintf(
			"parts of the control plane on node %s are not ready (kubectl get pods -n kube-system -o wide --field-selector spec.nodeName=%s)",
			w.node.Name,
			w.node.Name,
		), nil
	}
	return "", nil
}

// token finds a join token that the cluster does not accept.
func (w *nodeCheck) token(ctx context.Context) (string, error) {
	if w.api.PKI == nil {
		return "", nil
	}
	keys, ok := w.api.PKI.Found()
	id, _, both := strings.Cut(keys.Token, ".")
	if !ok || !both {
		return "", nil
	}
	var secret corev1.Secret
	err := w.k.Get(ctx, "/api/v1/namespaces/kube-system/secrets/"+bootstrapapi.BootstrapTokenSecretPrefix+id, &secret)
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf(
			"the cluster does not know the bootstrap token %s with which %s joins: it has expired and was removed: %s",
			id,
			w.machine.ID,
			w.renew(keys),
		), nil
	}
	if err != nil || len(secret.Data[bootstrapapi.BootstrapTokenExpirationKey]) == 0 {
		return "", err
	}
	until, err := time.Parse(time.RFC3339, string(secret.Data[bootstrapapi.BootstrapTokenExpirationKey]))
	if err != nil || until.After(w.c.Now()) {
		return "", err
	}
	return fmt.Sprintf("the bootstrap token %s with which %s joins has expired at %s: %s", id, w.machine.ID, until.UTC().Format(time.RFC3339), w.renew(keys)), nil
}

// renew is the advice for an expired token: machines get the same token again.
func (w *nodeCheck) renew(keys secrets.PKIState) string {
	return fmt.Sprintf(
		`create it again on a machine of the control plane, kubeadm token create "$(aws ssm get-parameter --region %s --with-decryption --name %s/%s --query Parameter.Value --output text)", then %s`,
		w.c.Region,
		keys.Path,
		secrets.TokenName,
		w.replaceIt(),
	)
}

// requests finds certificate requests of kubelets that are not approved.
func (w *nodeCheck) requests(ctx context.Context) (string, error) {
	var list certificatesv1.CertificateSigningRequestList
	if err := w.k.Get(ctx, "/apis/certificates.k8s.io/v1/certificatesigningrequests?limit=500", &list); err != nil {
		return "", err
	}
	for _, r := range list.Items {
		if !strings.HasPrefix(r.Spec.Username, "system:bootstrap:") || len(r.Status.Certificate) > 0 {
			continue
		}
		is := "waits for approval; the controller manager does not approve it. To approve it: kubectl certificate approve " + r.Name
		for _, x := range r.Status.Conditions {
			switch x.Type {
			case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
				is = strings.ToLower(string(x.Type)) + ": " + shortLine(x.Message)
			case certificatesv1.CertificateApproved:
				is = "is approved, but not signed: check the controller manager"
			}
		}
		return fmt.Sprintf("a machine has asked to join, and its certificate request %s %s", r.Name, is), nil
	}
	return "", nil
}

// otherNode finds a Node that has the machine's address, and the provider ID of
// another machine.
func (w *nodeCheck) otherNode(context.Context) (string, error) {
	s := w.all.At(w.machine)
	if s == nil {
		return "", nil
	}
	return fmt.Sprintf(
		"node %s has the address %s of %s, but the provider ID %s: it is left from an earlier machine (kubectl delete node %s), or its kubelet was given a wrong provider ID",
		s.Name,
		s.IP,
		w.machine.ID,
		s.ProviderID,
		s.Name,
	), nil
}
