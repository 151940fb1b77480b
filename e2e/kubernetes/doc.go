// Package kubernetes tests the built binary against a real management cluster:
// kube-apiserver, which it builds, etcd, which has to be installed (Debian:
// etcd-server), and the CustomResourceDefinitions of Cluster API and of its AWS
// provider. It is a module of its own, so that none of that is the product's.
package kubernetes
