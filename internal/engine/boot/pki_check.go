package boot

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// expiresSoon is when a CA that the user brings is about to end: machines that join later get
// certificates of it.
const expiresSoon = 30 * 24 * time.Hour

// CheckAuthority checks a CA that the user brings, with its key. kubeadm refuses one that is not a CA
// (CheckCertificateAuthority… and NewSelfSigned… in cmd/kubeadm/app/util/pkiutil), and with one that
// has expired no client can use the API server. soon says that it ends within a month.
func CheckAuthority(cert, key []byte, now time.Time) (soon string, err error) {
	certificates, err := parseCerts(cert)
	if err != nil {
		return "", err
	}
	if len(key) > 0 {
		if err := checkKey(key); err != nil {
			return "", err
		}
		if err := matches(key, certificates[0].PublicKey); err != nil {
			return "", err
		}
	}
	c := certificates[0]
	switch end := c.NotAfter; {
	case !c.IsCA || c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0:
		return "", errors.New("the certificate is not that of a certificate authority (CA: true, and the key usage to sign certificates)")
	case now.After(end):
		return "", fmt.Errorf("the certificate has expired on %s", end.Format(time.DateOnly))
	case now.Before(c.NotBefore):
		return "", fmt.Errorf("the certificate is not valid before %s", c.NotBefore.Format(time.DateTime))
	case now.Add(expiresSoon).After(end):
		return end.Format(time.DateOnly), nil
	}
	return "", nil
}

// CheckPair checks a key pair that the user brings and that is not a CA.
func CheckPair(cert, key []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return KeyPair{Cert: cert, Key: key}.check()
}

// CheckServiceAccount checks the keys with which tokens of service accounts are signed.
func CheckServiceAccount(public, key []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return checkServiceAccount(KeyPair{Cert: public, Key: key})
}

// checkKey reports what is before the key in a PEM file: "openssl ecparam -genkey" writes the
// parameters of the curve first, and Cluster API reads the first block only.
func checkKey(key []byte) error {
	block, _ := pem.Decode(key)
	switch {
	case block == nil:
		return errors.New("the key is not in PEM format")
	case block.Type == "EC PARAMETERS":
		return errors.New("the key begins with EC PARAMETERS: remove that block, or make the key with openssl ecparam -genkey -noout")
	}
	return nil
}
