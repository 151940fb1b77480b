package awssim

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
)

// settleEKSKubernetes gives every cluster of EKS that is active its API server.
func (a *AWS) settleEKSKubernetes() {
	for c := range a.Clusters() {
		host := c.host(a.o.Region)
		k := a.state.Kubernetes[host]
		switch {
		case k == nil && c.Deleted.IsZero() && !c.Ready.After(a.now()):
			k = kubesim.New("v"+c.Version+".0", c.Ready)
			k.EKS = c.Name
			a.state.Kubernetes[host] = k
		case k != nil && !c.Deleted.IsZero():
			delete(a.state.Kubernetes, host)
		}
		if k == nil {
			continue
		}
		path := "/apis/apps/v1/namespaces/kube-system/daemonsets/aws-node"
		if d := c.Addons["vpc-cni"]; (c.SelfManagedAddons || d != nil && d.Deleted.IsZero()) && k.Get(path) == nil {
			k.Put(a.now(), kubesim.Object{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": kubesim.Object{"name": "aws-node", "namespace": "kube-system"}})
		}
	}
}

// eksOf is the cluster of EKS that an instance is to join, by its tag.
func (a *AWS) eksOf(i *Instance) *EKSCluster {
	for c := range a.Clusters() {
		if i.Tags["kubernetes.io/cluster/"+c.Name] != "" && c.Deleted.IsZero() {
			return c
		}
	}
	return nil
}

// keptOut says why EKS does not let a machine in: its role has no access entry,
// nor is it in the ConfigMap aws-auth, whichever the cluster goes by.
func (a *AWS) keptOut(i *Instance, k *kubesim.Cluster) string {
	c := a.ClusterNamed(k.EKS)
	if c == nil || i.Tags["eks:nodegroup-name"] != "" { // EKS lets its own node groups in
		return ""
	}
	role := a.ProfileRole(i.Profile)
	for arn := range c.Access {
		if c.Authentication != string(types.AuthenticationModeConfigMap) && strings.HasSuffix(arn, "/"+role) {
			return ""
		}
	}
	mapped, _ := json.Marshal(k.Get("/api/v1/namespaces/kube-system/configmaps/aws-auth")) // it is of our making
	if c.Authentication != string(types.AuthenticationModeApi) && strings.Contains(string(mapped), "/"+role) {
		return ""
	}
	return "the role " + role + " is not let into the cluster"
}

// bootEKS joins a cluster of EKS.
func (a *AWS) bootEKS(i *Instance, c *EKSCluster) (*Boot, error) {
	b := &Boot{Host: c.host(a.o.Region), Version: "v" + c.Version + ".0-eks-1234567", Labels: map[string]string{}}
	if g := i.Tags["eks:nodegroup-name"]; g != "" {
		b.Labels["eks.amazonaws.com/nodegroup"] = g
		return b, nil
	}
	if !a.instanceProfileExists(i.Profile) {
		return nil, errors.New("the instance has no profile")
	}
	return b, nil
}
