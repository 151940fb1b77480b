package topology

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"strings"

	"golang.org/x/crypto/blake2b"
)

// maxLoadBalancerName is the limit of Elastic Load Balancing.
const maxLoadBalancerName = 32

// loadBalancerName returns the name that CAPA gives to an API load balancer
// (elb.ELBName): the stem and a suffix, or a hash of the stem if that is too long.
func loadBalancerName(stem string) string {
	name := strings.ReplaceAll(stem, ".", "-") + "-apiserver"
	if len(name) <= maxLoadBalancerName {
		return name
	}
	const length = maxLoadBalancerName - len("-k8s")
	h, err := blake2b.New(length, nil)
	if err != nil {
		panic(err) // only a length out of range is an error
	}
	_, _ = h.Write([]byte(stem)) // never fails
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	short := make([]byte, 0, length)
	for _, b := range h.Sum(nil) {
		short = append(short, digits[b%36])
	}
	return string(short) + "-k8s"
}

// suffix returns five characters derived from words. Cluster API uses random ones; here,
// a run that continues another has to find the same name.
func suffix(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	text := new(big.Int).SetBytes(sum[:8]).Text(36)
	return fmt.Sprintf("%05s", text)[:5]
}

// shorten cuts a name to leave room for a suffix, as Cluster API does with names of more
// than 63 characters.
func shorten(name string, room int) string {
	if most := 63 - room; len(name) > most {
		return name[:most]
	}
	return name
}
