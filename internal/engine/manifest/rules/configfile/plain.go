package configfile

import (
	"encoding/csv"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// plain checks a file that has no kind of its component: a kubeconfig, certificates, a key, or a list of tokens.
func (r *reader) plain() {
	switch {
	case r.Argument == "token-auth-file":
		r.tokens()
	case strings.HasSuffix(r.Argument, "kubeconfig") || strings.HasSuffix(r.Argument, "-webhook-config-file"):
		r.kubeconfig()
	case regex.Of(`(^|-)(ca-?file|certfile|cert-file|client-certificate|certificate-authority)$`).MatchString(r.Argument):
		if _, err := cert.ParseCertsPEM([]byte(r.Text)); err != nil {
			r.refuse("write the certificates as PEM, from -----BEGIN CERTIFICATE----- on", "it has no certificate that can be read")
		}
	case regex.Of(`(^|-)(keyfile|private-key-file|client-key)$`).MatchString(r.Argument):
		if _, err := keyutil.ParsePrivateKeyPEM([]byte(r.Text)); err != nil {
			r.refuse("write the key as PEM, without a passphrase", "it has no private key that can be read")
		}
	}
}

// tokens is NewCSV in k8s.io/apiserver/pkg/authentication/token/tokenfile.
func (r *reader) tokens() {
	lines := csv.NewReader(strings.NewReader(r.Text))
	lines.FieldsPerRecord = -1
	rows, err := lines.ReadAll()
	if err != nil {
		r.refuse("correct the text", "it is not a list of comma-separated values: %v", err)
	}
	for i, row := range rows {
		if len(row) < 3 {
			r.refuse("write token,user,uid and, in quotes, the groups", "the line %d has %d columns, and needs 3", i+1, len(row))
		}
	}
}

// kubeconfig reads a kubeconfig as k8s.io/client-go/tools/clientcmd does.
func (r *reader) kubeconfig() {
	config, err := clientcmd.Load([]byte(r.Text))
	if err != nil {
		r.refuse("correct the text", "it is not a kubeconfig: %v", reason(err))
		return
	}
	// Certificates and keys are files of the machine.
	for _, c := range config.Clusters {
		c.CertificateAuthority = ""
	}
	for _, u := range config.AuthInfos {
		u.ClientCertificate, u.ClientKey, u.TokenFile = "", "", ""
	}
	if _, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig(); err != nil {
		r.refuse("correct the kubeconfig", "%s", strings.TrimPrefix(err.Error(), "invalid configuration: "))
	}
}
