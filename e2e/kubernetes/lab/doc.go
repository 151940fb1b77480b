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
package lab
