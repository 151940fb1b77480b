package ssm

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"path"
	"strings"
	"time"
)

// standIn returns the value of a parameter that is a copy without its value: a key, a
// certificate, both as a JSON object, or a token that anybody can make, the same for the same
// name. A key and its certificate match.
func standIn(name string) string {
	pair := strings.TrimSuffix(name, path.Ext(name))
	switch path.Ext(name) {
	case ".key":
		return encoded("EC PRIVATE KEY", func() ([]byte, error) { return x509.MarshalECPrivateKey(keyOf(pair)) })
	case ".pub":
		return encoded("PUBLIC KEY", func() ([]byte, error) { return x509.MarshalPKIXPublicKey(keyOf(pair).Public()) })
	case ".crt":
		return encoded("CERTIFICATE", func() ([]byte, error) { return certificateOf(pair) })
	}
	switch base := path.Base(name); {
	case base == "token":
		return "copied.0000000000000000"
	case base == "sa":
		return both(name, ".pub", ".key")
	case path.Base(path.Dir(name)) == "pki":
		return both(name, ".crt", ".key")
	}
	return "withheld"
}

// both returns the value of a parameter with two files.
func both(name, one, other string) string {
	files := map[string]string{}
	for _, end := range []string{one, other} {
		files[path.Base(name)+end] = standIn(name + end)
	}
	value, err := json.Marshal(files)
	if err != nil {
		return err.Error()
	}
	return string(value)
}

func encoded(kind string, of func() ([]byte, error)) string {
	der, err := of()
	if err != nil {
		return err.Error()
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// keyOf returns the key for a name.
func keyOf(name string) *ecdsa.PrivateKey {
	sum := sha256.Sum256([]byte(name))
	sum[0] = 0 // below the order of the curve
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), sum[:])
	if err != nil {
		panic("awssim: " + err.Error())
	}
	return key
}

// certificateOf returns the certificate of an authority for a name.
func certificateOf(name string) ([]byte, error) {
	key := keyOf(name)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: path.Base(name)}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	return x509.CreateCertificate(rand.Reader, authority, authority, key.Public(), key)
}
