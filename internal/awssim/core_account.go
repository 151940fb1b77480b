package awssim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// partition is the partition of the region.
func (a *AWS) partition() string {
	switch {
	case strings.HasPrefix(a.o.Region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(a.o.Region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// regionalARN is the ARN of something in the account and the region.
func (a *AWS) regionalARN(service, resource string) string {
	return "arn:" + a.partition() + ":" + service + ":" + a.o.Region + ":" + Account + ":" + resource
}

// hash makes 16 hexadecimal digits.
func (a *AWS) hash() string { return strings.TrimPrefix(a.id("hash"), "hash-0") }

// now is the time of the account.
func (a *AWS) now() time.Time {
	if !a.past.IsZero() {
		return a.past
	}
	return a.o.Clock.Now()
}

// id makes an ID as EC2 does: "vpc-" and 17 hexadecimal digits. It is the
// same for the same history.
func (a *AWS) id(prefix string) string {
	a.state.Serial++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", prefix, a.state.Serial))
	return prefix + "-0" + hex.EncodeToString(sum[:8])
}

// visible reports whether a thing of that age shows up in lists. What has a
// date of its own, as images have, may be younger than a virtual clock.
func (a *AWS) visible(born time.Time) bool {
	age := a.now().Sub(born)
	return age < 0 || age >= a.o.Lag
}

// serial counts everything ever created.
func (a *AWS) serial() int { return a.state.Serial }

// nextSerial counts one more.
func (a *AWS) nextSerial() int {
	a.state.Serial++
	return a.state.Serial
}

// setPast has the account be at a moment in the past; the zero time is the present.
func (a *AWS) setPast(at time.Time) { a.past = at }
