package incluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// SelfManagedAddon is the VPC CNI or kube-proxy of an EKS cluster, which EKS has installed
// and the manifest disables (vpcCni.disable, kubeProxy.disable). To delete it is to delete
// its objects. As in CAPA, those with the label preventDeletion stay.
type SelfManagedAddon struct {
	API     *API
	Server  *graph.Ref[APIServerState]
	Objects []string // paths of the objects
}

// preventDeletion is the label of objects that belong to another installation.
const preventDeletion = "aws.cluster.x-k8s.io/prevent-deletion"

// SelfManagedAddonState lists the objects that exist.
type SelfManagedAddonState struct{ Objects []string }

// CloudID implements graph.State.
func (s SelfManagedAddonState) CloudID() string { return text.Several(names(s.Objects)) }

// names returns the last parts of paths.
func names(paths []string) (out []string) {
	for _, p := range paths {
		parts := strings.Split(p, "/")
		out = append(out, parts[len(parts)-2]+"/"+parts[len(parts)-1])
	}
	return out
}

var (
	_ graph.Desired[SelfManagedAddonState] = (*SelfManagedAddon)(nil)
	_ graph.Deleter[SelfManagedAddonState] = (*SelfManagedAddon)(nil)
)

// VPCCNIObjects are the objects of the VPC CNI, and KubeProxyObjects those of kube-proxy, that
// CAPA deletes.
func VPCCNIObjects() []string {
	return []string{
		awsNode, "/api/v1/namespaces/kube-system/serviceaccounts/aws-node",
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/aws-node", "/apis/rbac.authorization.k8s.io/v1/clusterroles/aws-node",
	}
}

// KubeProxyObjects are the objects of kube-proxy that CAPA deletes.
func KubeProxyObjects() []string {
	return []string{"/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"}
}

// Needs implements graph.Desired.
func (a *SelfManagedAddon) Needs() []graph.Edge { return graph.On(a.Server) }

// Find implements graph.Desired.
func (a *SelfManagedAddon) Find(ctx context.Context, c *cloud.Clients) (*SelfManagedAddonState, error) {
	if !answers(a.Server) {
		return nil, nil // the API server does not answer yet
	}
	k, err := a.API.Client(c)
	if err != nil {
		return nil, err
	}
	s := &SelfManagedAddonState{}
	for _, path := range a.Objects {
		var have metav1.PartialObjectMetadata
		switch err := k.Get(ctx, path, &have); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, retryUnavailable(ctx, err)
		default:
			if _, keep := have.Labels[preventDeletion]; !keep {
				s.Objects = append(s.Objects, path)
			}
		}
	}
	if len(s.Objects) == 0 {
		return nil, nil
	}
	return s, nil
}

// Diff implements graph.Desired: the add-on is retired, so nothing differs.
func (a *SelfManagedAddon) Diff(*SelfManagedAddonState) plan.Diff { return nil }

// Delete implements graph.Deleter.
func (a *SelfManagedAddon) Delete(ctx context.Context, c *cloud.Clients, have *SelfManagedAddonState) error {
	k, err := a.API.Client(c)
	if err != nil {
		return err
	}
	var failed error
	for _, path := range have.Objects {
		if err := k.Delete(ctx, path); err != nil && !apierrors.IsNotFound(err) {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", names([]string{path})[0], err))
		}
	}
	return retryUnavailable(ctx, failed)
}
