// Package lab is an AWS in which instances boot: on one machine, without
// leaving it. moto_server answers clusterawsadm; an instance that it is asked
// for becomes a network namespace with processes of its own (package node),
// started from the very user data of RunInstances; a load balancer forwards to
// the instances that are registered with it. All of it is in namespaces whose
// names begin with "clab-", and goes when the test does.
//
// What is real: clusterawsadm, the AWS CLI, cloud-init with its boothook,
// kubeadm, etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
// kubectl. What is not: systemd, the container runtime and the kubelet, for
// which package node stands in; AWS; the pod network, kube-proxy and CoreDNS,
// whose pods are only said to run. The network has no security groups.
package lab
