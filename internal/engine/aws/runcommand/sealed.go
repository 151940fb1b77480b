package runcommand

import (
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
)

// keyBits is the size of the key of a run.
const keyBits = 3072

// newKey makes the key of a run. It is never stored.
func newKey() (key *rsa.PrivateKey, public string, err error) {
	if key, err = rsa.GenerateKey(rand.Reader, keyBits); err != nil {
		return nil, "", fmt.Errorf("key for the output of commands: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, "", fmt.Errorf("key for the output of commands: %w", err)
	}
	return key, strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))), nil
}

// piece is a part of a compressed output.
type piece struct {
	size int    // of all parts
	hash string // of all parts: SHA-256 in hexadecimal
	data []byte
}

// open decrypts what a script has printed.
func open(key *rsa.PrivateKey, printed string) (p piece, err error) {
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	if len(lines) != 3 || lines[2] != mark {
		return p, errors.New("the output is not complete")
	}
	var sealed [2][]byte
	for i := range sealed {
		if sealed[i], err = base64.StdEncoding.DecodeString(lines[i]); err != nil {
			return p, fmt.Errorf("the output is damaged: %w", err)
		}
	}
	password, err := rsa.DecryptOAEP(sha256.New(), nil, key, sealed[0], nil)
	if err != nil {
		return p, fmt.Errorf("the output is damaged: %w", err)
	}
	plain, err := decrypt(password, sealed[1])
	if err != nil {
		return p, err
	}
	head, data, _ := bytes.Cut(plain, []byte("\n"))
	if _, err := fmt.Sscanf(string(head), "%d %64s", &p.size, &p.hash); err != nil {
		return p, fmt.Errorf("the output is damaged: %w", err)
	}
	p.data = data
	return p, nil
}

// decrypt reverses "openssl enc -aes-256-cbc -md sha256 -salt". openssl derives the key with a
// single hash, which is safe because the password has 256 random bits.
func decrypt(password, sealed []byte) ([]byte, error) {
	const head = "Salted__"
	salted, ok := bytes.CutPrefix(sealed, []byte(head))
	if !ok || len(salted) < 8+aes.BlockSize || (len(salted)-8)%aes.BlockSize != 0 {
		return nil, errors.New("the output is damaged: it is not what openssl writes")
	}
	salt, text := salted[:8], bytes.Clone(salted[8:])
	key := sha256.Sum256(bytes.Join([][]byte{password, salt}, nil))
	iv := sha256.Sum256(bytes.Join([][]byte{key[:], password, salt}, nil))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	cipher.NewCBCDecrypter(block, iv[:aes.BlockSize]).CryptBlocks(text, text)
	pad := int(text[len(text)-1])
	if pad == 0 || pad > aes.BlockSize || pad > len(text) {
		return nil, errors.New("the output is damaged: the password does not fit")
	}
	return text[:len(text)-pad], nil
}

// join returns the output of which data are all parts.
func join(hash string, data []byte) ([]byte, error) {
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != hash {
		return nil, errors.New("the output has changed while it was read")
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("the output is damaged: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(z, mostOutput))
	if err != nil {
		return nil, fmt.Errorf("the output is damaged: %w", err)
	}
	return out, nil
}
