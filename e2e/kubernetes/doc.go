// Package kubernetes tests the built binary with a real management cluster:
// kube-apiserver, which it builds; etcd, which has to be installed (Debian: etcd-server);
// and the CustomResourceDefinitions of Cluster API and CAPA. It is a separate module, so
// that the product does not depend on them.
package kubernetes
