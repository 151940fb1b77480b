package text

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Shortened returns a name of at most that many characters: the end of a longer one is replaced by a hash.
func Shortened(name string, most int) string {
	const digits = 8
	if len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:most-digits-1], "-") + "-" + hex.EncodeToString(sum[:])[:digits]
}
