package backup

import (
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
)

// Seal compresses and encrypts a database for the script that restores it: "openssl enc -d
// -aes-256-cbc -md sha256". openssl derives the key with a single hash, which is safe because the
// password has 256 random bits. The script compares the SHA-256 of the result.
func Seal(w io.Writer, database io.Reader, password string) error {
	salt := make([]byte, 8)
	if _, err := rand.Read(salt); err != nil {
		return err
	}
	key := sha256.Sum256(bytes.Join([][]byte{[]byte(password), salt}, nil))
	iv := sha256.Sum256(bytes.Join([][]byte{key[:], []byte(password), salt}, nil))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return err
	}
	if _, err := w.Write(append([]byte("Salted__"), salt...)); err != nil {
		return err
	}
	blocks := &blockWriter{w: w, mode: cipher.NewCBCEncrypter(block, iv[:aes.BlockSize])}
	packed := gzip.NewWriter(blocks)
	_, err = io.Copy(packed, database)
	return errors.Join(err, packed.Close(), blocks.close())
}

// blockWriter encrypts whole blocks.
type blockWriter struct {
	w    io.Writer
	mode cipher.BlockMode
	rest []byte
}

// Write implements io.Writer.
func (b *blockWriter) Write(p []byte) (int, error) {
	b.rest = append(b.rest, p...)
	whole := len(b.rest) / aes.BlockSize * aes.BlockSize
	b.mode.CryptBlocks(b.rest[:whole], b.rest[:whole])
	if _, err := b.w.Write(b.rest[:whole]); err != nil {
		return 0, err
	}
	b.rest = append(b.rest[:0], b.rest[whole:]...)
	return len(p), nil
}

// close writes the last block, with the padding of PKCS #7.
func (b *blockWriter) close() error {
	pad := aes.BlockSize - len(b.rest)
	last := append(b.rest, bytes.Repeat([]byte{byte(pad)}, pad)...) //nolint:gosec // at most 16
	b.mode.CryptBlocks(last, last)
	_, err := b.w.Write(last)
	return err
}
