package kubernetes

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
)

// settleEKS creates an API server for every active EKS cluster.
func (svc *Service) settleEKS() {
	for c := range svc.EKS.Clusters() {
		host := c.Host(svc.Region)
		k := svc.clusters[host]
		switch {
		case k == nil && c.Deleted.IsZero() && !c.Ready.After(svc.Now()):
			k = kubesim.New("v"+c.Version+".0", c.Ready)
			k.EKS = c.Name
			svc.clusters[host] = k
			if c.SelfManagedAddons {
				svc.installVPCCNI(k)
				k.Put(svc.Now(), systemWorkload("DaemonSet", "kube-proxy", "kube-proxy:v"+c.Version))
			}
		case k != nil && !c.Deleted.IsZero():
			delete(svc.clusters, host)
		}
		if k == nil {
			continue
		}
		if d := c.Addons["vpc-cni"]; d != nil && d.Deleted.IsZero() && k.Get("/apis/apps/v1/namespaces/kube-system/daemonsets/aws-node") == nil {
			svc.installVPCCNI(k)
		}
	}
}

// installVPCCNI installs the VPC CNI, as EKS does once for a new cluster, and as an add-on.
func (svc *Service) installVPCCNI(k *kubesim.Cluster) {
	const rbac = "rbac.authorization.k8s.io/v1"
	now := svc.Now()
	k.Put(now, systemWorkload("DaemonSet", "aws-node", "amazon-k8s-cni:v1.20.4"))
	k.Put(now, kubesim.Object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": kubesim.Object{"name": "aws-node", "namespace": "kube-system"}})
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		k.Put(now, kubesim.Object{"apiVersion": rbac, "kind": kind, "metadata": kubesim.Object{"name": "aws-node"}})
	}
	k.Put(now, kubesim.Object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": kubesim.Object{"name": "eniconfigs.crd.k8s.amazonaws.com"},
		"spec": kubesim.Object{
			"group": "crd.k8s.amazonaws.com", "scope": "Cluster", "names": kubesim.Object{"kind": "ENIConfig", "plural": "eniconfigs"},
			"versions": []any{kubesim.Object{"name": "v1alpha1", "served": true, "storage": true}},
		},
	})
}

// eksOf returns the EKS cluster of an instance, by its tag.
func (svc *Service) eksOf(i *ec2.Instance) *eks.Cluster {
	for c := range svc.EKS.Clusters() {
		if i.Tags["kubernetes.io/cluster/"+c.Name] != "" && c.Deleted.IsZero() {
			return c
		}
	}
	return nil
}

// keptOut returns why EKS rejects a machine: its role is neither in an access entry nor
// in the ConfigMap aws-auth, depending on the authentication mode.
func (svc *Service) keptOut(i *ec2.Instance, k *kubesim.Cluster) string {
	c := svc.EKS.ClusterNamed(k.EKS)
	if c == nil || i.Tags["eks:nodegroup-name"] != "" { // EKS permits its own node groups
		return ""
	}
	role := svc.IAM.ProfileRole(i.Profile)
	for arn := range c.Access {
		if c.Authentication != string(types.AuthenticationModeConfigMap) && strings.HasSuffix(arn, "/"+role) {
			return ""
		}
	}
	mapped, _ := json.Marshal(k.Get("/api/v1/namespaces/kube-system/configmaps/aws-auth")) // the simulator wrote it
	if c.Authentication != string(types.AuthenticationModeApi) && strings.Contains(string(mapped), "/"+role) {
		return ""
	}
	return "the role " + role + " is not let into the cluster"
}

// bootEKS simulates the boot of a machine that joins an EKS cluster.
func (svc *Service) bootEKS(i *ec2.Instance, c *eks.Cluster) (*ec2.Boot, error) {
	b := &ec2.Boot{Host: c.Host(svc.Region), Version: "v" + c.Version + ".0-eks-1234567", Labels: map[string]string{}}
	if g := i.Tags["eks:nodegroup-name"]; g != "" {
		b.Labels["eks.amazonaws.com/nodegroup"] = g
		return b, nil
	}
	if !svc.IAM.ProfileExists(i.Profile) {
		return nil, errors.New("the instance has no profile")
	}
	return b, nil
}
