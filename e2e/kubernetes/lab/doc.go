// Package lab simulates AWS with instances that boot, on one machine and without network
// access. moto_server answers clusterawsadm. Each instance is a network namespace with
// its own processes (package node), which start from the real user data of RunInstances.
// A load balancer forwards to its registered instances. All namespaces have names that
// begin with "clab-", and are deleted at the end of the test.
//
// Real are: clusterawsadm, the AWS CLI, cloud-init with its boothook, kubeadm, etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, kubectl. Replaced are:
// systemd, the container runtime and the kubelet (package node); AWS; the pod network,
// kube-proxy and CoreDNS, whose pods are reported as running but do not run. The network
// has no security groups.
//
// In TestReady the container runtime and the kubelet are real, too: containerd and runc of
// Debian, and the kubelet of its Go module, with control groups of version 1. Images are made
// from programs that are built here, and pulled from a registry of the lab: pause is its own,
// and the containers of the EBS CSI driver only wait, because its modules are not published.
// The other tests still use the replacements: they need a fifth of the time.
package lab
