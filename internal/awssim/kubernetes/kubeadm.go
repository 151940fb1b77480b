package kubernetes

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
)

// uploaded returns the ClusterConfiguration that kubeadm init stores in the cluster: with
// defaults (kubeadm's defaults.go) and, before 1.31, the authorization modes among the
// arguments.
func uploaded(config string) (string, error) {
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(config), &doc); err != nil {
		return "", err
	}
	fillIn(doc, map[string]any{"imageRepository": defaultRepository, "certificatesDir": "/etc/kubernetes/pki", "clusterName": "kubernetes"})
	fillIn(under(doc, "networking"), map[string]any{"serviceSubnet": "10.96.0.0/12", "dnsDomain": "cluster.local"})
	if etcd := under(doc, "etcd"); etcd["external"] == nil {
		fillIn(under(etcd, "local"), map[string]any{"dataDir": "/var/lib/etcd"})
	}
	if strings.HasSuffix(doc["apiVersion"].(string), "/v1beta3") {
		server := under(doc, "apiServer")
		fillIn(server, map[string]any{"timeoutForControlPlane": "4m0s"})
		fillIn(under(server, "extraArgs"), map[string]any{"authorization-mode": "Node,RBAC"})
	} else {
		fillIn(doc, map[string]any{"encryptionAlgorithm": "RSA-2048", "certificateValidityPeriod": "8760h0m0s", "caCertificateValidityPeriod": "87600h0m0s"})
	}
	out, err := yaml.Marshal(doc)
	return string(out), err
}

// under returns the mapping for a key, and creates it if necessary.
func under(doc map[string]any, key string) map[string]any {
	m, _ := doc[key].(map[string]any)
	if m == nil {
		m = map[string]any{}
		doc[key] = m
	}
	return m
}

// fillIn sets values that are not set.
func fillIn(doc, defaults map[string]any) {
	for k, v := range defaults {
		if doc[k] == nil || doc[k] == "" {
			doc[k] = v
		}
	}
}

// defaultRepository is kubeadm's default image repository.
const defaultRepository = "registry.k8s.io"

// systemImages returns kube-proxy and CoreDNS as kubeadm installs them for a
// ClusterConfiguration with defaults.
func systemImages(config, version string) (proxy, dns kubesim.Object, err error) {
	var doc struct {
		ImageRepository string
		DNS             struct{ ImageRepository, ImageTag string }
		Etcd            struct {
			Local struct{ ImageRepository, ImageTag string }
		}
	}
	if err := yaml.Unmarshal([]byte(config), &doc); err != nil {
		return nil, nil, err
	}
	repository := cmp.Or(doc.DNS.ImageRepository, doc.ImageRepository)
	// ImagePullCheck in cmd/kubeadm/app/preflight/checks.go: the tags of CoreDNS in registry.k8s.io begin with v, those of etcd end with a revision.
	if tag := doc.DNS.ImageTag; repository == defaultRepository && tag != "" && tag[0] != 'v' {
		return nil, nil, fmt.Errorf("[ERROR ImagePull]: failed to pull image %s/coredns/coredns:%s", repository, tag)
	}
	if etcd := doc.Etcd.Local; cmp.Or(etcd.ImageRepository, doc.ImageRepository) == defaultRepository && etcd.ImageTag != "" &&
		!strings.Contains(etcd.ImageTag, "-") {
		return nil, nil, fmt.Errorf("[ERROR ImagePull]: failed to pull image %s/etcd:%s", defaultRepository, etcd.ImageTag)
	}
	if repository == defaultRepository {
		repository += "/coredns"
	}
	// The tolerations are those of cmd/kubeadm/app/phases/addons/{proxy,dns}/manifests.go of Kubernetes v1.34.2.
	proxy = systemWorkload(
		"DaemonSet",
		"kube-proxy",
		doc.ImageRepository+"/kube-proxy:"+strings.ReplaceAll(version, "+", "_"),
		kubesim.Object{"operator": "Exists"},
	)
	dns = systemWorkload(
		"Deployment", "coredns", repository+"/coredns:"+cmp.Or(doc.DNS.ImageTag, "v1.12.1"),
		kubesim.Object{"key": "CriticalAddonsOnly", "operator": "Exists"},
		kubesim.Object{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
	)
	return proxy, dns, nil
}

// putSystem stores a workload of kube-system with its service account.
func putSystem(k *kubesim.Cluster, now time.Time, workload kubesim.Object) {
	name := kubesim.Value(workload, "spec", "template", "spec", "serviceAccountName")
	k.Put(now, kubesim.Object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": kubesim.Object{"name": name, "namespace": "kube-system"}})
	k.Put(now, workload)
}

// putConfig stores the ConfigMap of a workload, which kubeadm creates before the workload (cmd/kubeadm/app/phases/addons/{proxy,dns} of Kubernetes
// v1.34.2).
func putConfig(k *kubesim.Cluster, name string) {
	k.Put(k.Up, kubesim.Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": kubesim.Object{"name": name, "namespace": "kube-system"}})
}

// systemWorkload is a workload in kube-system, whose pods have tolerations.
func systemWorkload(kind, name, image string, tolerations ...any) kubesim.Object {
	pod := kubesim.Object{
		"containers": []any{kubesim.Object{"name": name, "image": image}}, "serviceAccountName": name, "priorityClassName": "system-cluster-critical",
	}
	if kind == "DaemonSet" {
		pod["hostNetwork"], pod["priorityClassName"] = true, "system-node-critical"
	}
	if len(tolerations) > 0 {
		pod["tolerations"] = tolerations
	}
	labels := kubesim.Object{"k8s-app": name}
	return kubesim.Object{
		"apiVersion": "apps/v1", "kind": kind, "metadata": kubesim.Object{"name": name, "namespace": "kube-system"},
		"spec": kubesim.Object{
			"selector": kubesim.Object{"matchLabels": labels},
			"template": kubesim.Object{"metadata": kubesim.Object{"labels": labels}, "spec": pod},
		},
	}
}
