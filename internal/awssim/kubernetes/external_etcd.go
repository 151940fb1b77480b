package kubernetes

import (
	"crypto/tls"
	"fmt"

	"sigs.k8s.io/yaml"
)

// externalEtcd is an etcd that runs on other machines, in a ClusterConfiguration.
type externalEtcd struct {
	Endpoints                 []string
	CAFile, CertFile, KeyFile string
}

// externalEtcdOf returns the external etcd of a ClusterConfiguration, or nil.
func externalEtcdOf(config string) *externalEtcd {
	var doc struct {
		Etcd struct{ External *externalEtcd }
	}
	if yaml.Unmarshal([]byte(config), &doc) != nil {
		return nil
	}
	return doc.Etcd.External
}

// refused returns the error of kubeadm's preflight checks of init and join if the files for etcd are missing or do not match
// (addCommonChecks and ExternalEtcdVersionCheck in cmd/kubeadm/app/preflight/checks.go of v1.34.2). The etcd itself is not simulated: it answers.
func (e *externalEtcd) refused(files map[string]string) string {
	if e == nil {
		return ""
	}
	for _, name := range []string{e.CAFile, e.CertFile, e.KeyFile} {
		if _, exists := files[name]; name != "" && !exists {
			return fmt.Sprintf("[ERROR ExternalEtcdClientCertificates]: %s doesn't exist", name)
		}
	}
	if e.CertFile == "" || e.KeyFile == "" {
		return ""
	}
	if _, err := tls.X509KeyPair([]byte(files[e.CertFile]), []byte(files[e.KeyFile])); err != nil {
		return fmt.Sprintf("[ERROR ExternalEtcdVersion]: couldn't load external etcd's certificate and key pair %s, %s: %v", e.CertFile, e.KeyFile, err)
	}
	return ""
}
