// Package incluster holds the resources inside the Kubernetes cluster: its API
// server, Nodes, etcd members, kubeadm's configuration, join token, add-ons.
package incluster
