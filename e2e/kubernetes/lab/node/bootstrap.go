package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log"
	"path/filepath"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
)

// bootstrapPatience is the timeout of one request, which is repeated.
const bootstrapPatience = time.Minute

// bootstrap requests the certificate of this node from the API server, with the bootstrap
// token. kube-controller-manager approves and signs it.
func (k *kubelet) bootstrap(ctx context.Context) error {
	client, err := clientFrom(bootstrapKubeconfig)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	name := k.nodeName()
	request, err := certutil.MakeCSR(key, &pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}, nil, nil)
	if err != nil {
		return err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, bootstrapPatience)
	defer cancel()
	named, uid, err := csr.RequestCertificateWithContext(ctx, client, request, "", certificatesv1.KubeAPIServerClientKubeletSignerName, nil,
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, key)
	if err != nil {
		return fmt.Errorf("ask for a certificate: %w", err)
	}
	cert, err := csr.WaitForCertificate(ctx, client, named, uid)
	if err != nil {
		return fmt.Errorf("wait for %s: %w", named, err)
	}
	if _, err := x509.ParseCertificate(firstBlock(cert)); err != nil {
		return fmt.Errorf("%s: %w", named, err)
	}
	log.Printf("kubelet: %s was approved and signed after %s", named, time.Since(began).Round(time.Millisecond))
	file := filepath.Join(kubeletKeys, "kubelet-client-current.pem")
	if err := write(file, append(cert, pem...)); err != nil {
		return err
	}
	return writeKubeconfig(file)
}

func firstBlock(pem []byte) []byte {
	certs, err := certutil.ParseCertsPEM(pem)
	if err != nil {
		return nil
	}
	return certs[0].Raw
}

// writeKubeconfig writes the kubeconfig of the node, for the server of the bootstrap
// kubeconfig.
func writeKubeconfig(certificate string) error {
	from, err := clientcmd.BuildConfigFromFlags("", bootstrapKubeconfig)
	if err != nil {
		return err
	}
	if err := rest.LoadTLSFiles(from); err != nil {
		return err
	}
	cfg := api.NewConfig()
	cfg.Clusters["default-cluster"] = &api.Cluster{Server: from.Host, CertificateAuthorityData: from.CAData}
	cfg.AuthInfos["default-auth"] = &api.AuthInfo{ClientCertificate: certificate, ClientKey: certificate}
	cfg.Contexts["default-context"] = &api.Context{Cluster: "default-cluster", AuthInfo: "default-auth", Namespace: "default"}
	cfg.CurrentContext = "default-context"
	text, err := clientcmd.Write(*cfg)
	if err != nil {
		return err
	}
	return write(kubeletKubeconfig, text)
}

// nodeName is the name from kubeadm, otherwise the host name.
func (k *kubelet) nodeName() string {
	if name := readFlags()["hostname-override"]; name != "" {
		return name
	}
	return k.self.Name
}
