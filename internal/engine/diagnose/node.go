package diagnose

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// Node returns the diagnosis of a machine that has not become a ready node.
func Node(n *incluster.Node) graph.Diagnosis {
	return func(ctx context.Context, c *cloud.Clients) (findings []string, look string) { return ofNode(ctx, c, n) }
}

func ofNode(ctx context.Context, c *cloud.Clients, n *incluster.Node) (findings []string, look string) {
	q := about(c, n.Machine, n.Parts)
	if q == nil {
		return nil, ""
	}
	k, err := n.API.Client(c)
	all, unlisted := incluster.Nodes(ctx, c, n.API)
	if err != nil || unlisted != nil || k == nil {
		q.booting(ctx)
		q.ask(ctx, func(context.Context) (string, error) {
			return "the API server, which answered before, does not now: see to it first", nil
		})
		return q.result(ctx)
	}
	w := &newcomer{q, n, k, all, all.Of(q.machine)}
	if w.node == nil {
		q.booting(ctx)
		q.ask(ctx, w.token, w.requests, w.otherName)
		return q.result(ctx)
	}
	q.ask(ctx, q.state, w.network, w.controller, w.unwell)
	q.ended = true // it has booted: its console tells no more
	findings, _ = q.result(ctx)
	return findings, "kubectl describe node " + w.node.Name
}

// newcomer is a machine, as the API server knows it or does not.
type newcomer struct {
	*inquiry
	want *incluster.Node
	k    *kube.Client
	all  *incluster.Roster
	node *incluster.NodeState // nil: it has not joined
}

// network finds a node that waits for a pod network.
func (w *newcomer) network(context.Context) (string, error) {
	message := strings.ToLower(w.node.Message)
	if w.node.Ready || !strings.Contains(message, "cni") && !strings.Contains(message, "network plugin") {
		return "", nil
	}
	return fmt.Sprintf("node %s is not ready: %q. The cluster has no pod network, or its pods do not run on this node: install one with kubectl, or with --cni FILE (kubectl get pods -A -o wide --field-selector spec.nodeName=%s)",
		w.node.Name, shortened(w.node.Message), w.node.Name), nil
}

// controller finds a node that waits for a cloud controller manager.
func (w *newcomer) controller(context.Context) (string, error) {
	if !w.want.External || w.node.ProviderID != "" && !w.node.Uninitialized {
		return "", nil
	}
	has := "no provider ID"
	if w.node.Uninitialized {
		has += ", and the taint node.cloudprovider.kubernetes.io/uninitialized"
	}
	return fmt.Sprintf("node %s has %s: its kubelet has cloud-provider: external, and no AWS cloud controller manager has seen to it. Install one (kubectl get pods -A | grep cloud-controller; its log says what it may not do)",
		w.node.Name, has), nil
}

// unwell finds a node that is not ready for other reasons.
func (w *newcomer) unwell(context.Context) (string, error) {
	switch {
	case w.node.Unreachable:
		return fmt.Sprintf("the kubelet of node %s is not heard of any more (%s): %s hangs, or has lost its network", w.node.Name, shortened(w.node.Message), w.machine.ID), nil
	case !w.node.Ready && len(w.found) == 0:
		return fmt.Sprintf("node %s is not ready: %q (kubectl describe node %s)", w.node.Name, shortened(w.node.Message), w.node.Name), nil
	case w.want.Parts && len(w.found) == 0:
		return fmt.Sprintf("parts of the control plane on node %s are not ready (kubectl get pods -n kube-system -o wide --field-selector spec.nodeName=%s)", w.node.Name, w.node.Name), nil
	}
	return "", nil
}

// token finds out that the cluster does not accept the token that machines join
// with.
func (w *newcomer) token(ctx context.Context) (string, error) {
	if w.want.API.PKI == nil {
		return "", nil
	}
	keys, ok := w.want.API.PKI.Found()
	id, _, both := strings.Cut(keys.Token, ".")
	if !ok || !both {
		return "", nil
	}
	var secret struct {
		Data struct{ Expiration string }
	}
	err := w.k.Get(ctx, "/api/v1/namespaces/kube-system/secrets/bootstrap-token-"+id, &secret)
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("the cluster does not know the bootstrap token %s with which %s joins: it has expired and was removed: %s", id, w.machine.ID, w.renew(keys)), nil
	}
	if err != nil || secret.Data.Expiration == "" {
		return "", err
	}
	at, err := base64.StdEncoding.DecodeString(secret.Data.Expiration)
	if err != nil {
		return "", err
	}
	until, err := time.Parse(time.RFC3339, string(at))
	if err != nil || until.After(w.c.Clock.Now()) {
		return "", err
	}
	return fmt.Sprintf("the bootstrap token %s with which %s joins has expired at %s: %s", id, w.machine.ID, until.UTC().Format(time.RFC3339), w.renew(keys)), nil
}

// renew is the advice for a token that is not valid any more: machines are
// given the same one again.
func (w *newcomer) renew(keys secrets.PKIState) string {
	return fmt.Sprintf(`make it again on a machine of the control plane, kubeadm token create "$(aws ssm get-parameter --region %s --with-decryption --name %s/%s --query Parameter.Value --output text)", then %s`,
		w.c.Region, keys.Path, secrets.TokenName, w.anew())
}

// requests finds certificates of kubelets that nobody has approved.
func (w *newcomer) requests(ctx context.Context) (string, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ Username string }
			Status   struct {
				Certificate string
				Conditions  []struct{ Type, Message string }
			}
		}
	}
	if err := w.k.Get(ctx, "/apis/certificates.k8s.io/v1/certificatesigningrequests?limit=500", &list); err != nil {
		return "", err
	}
	for _, r := range list.Items {
		if !strings.HasPrefix(r.Spec.Username, "system:bootstrap:") || r.Status.Certificate != "" {
			continue
		}
		is := "waits for approval: something keeps the controller manager from it, approve it yourself (kubectl certificate approve " + r.Metadata.Name + ")"
		for _, x := range r.Status.Conditions {
			switch x.Type {
			case "Denied", "Failed":
				is = strings.ToLower(x.Type) + ": " + shortened(x.Message)
			case "Approved":
				is = "is approved, and nobody signs it: see to the controller manager"
			}
		}
		return fmt.Sprintf("a machine has asked to join, and its certificate request %s %s", r.Metadata.Name, is), nil
	}
	return "", nil
}

// otherName finds a node at the machine's address that says to be another
// machine.
func (w *newcomer) otherName(context.Context) (string, error) {
	s := w.all.ByIP[w.machine.PrivateIP]
	if s == nil || w.machine.PrivateIP == "" {
		return "", nil
	}
	return fmt.Sprintf("node %s has the address %s of %s, but says to be %s: it is left from an earlier machine (kubectl delete node %s), or its kubelet was given a wrong provider ID",
		s.Name, s.IP, w.machine.ID, s.ProviderID, s.Name), nil
}
