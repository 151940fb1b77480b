package rules

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// longestURL is how long a presigned URL of S3 works at most ("Sharing objects with presigned URLs", S3 user guide).
const longestURL = 7 * 24 * time.Hour

// EC2 takes at least some seconds between the launch of a machine and its first program, and sometimes minutes ("The instance state while it starts",
// EC2 user guide: pending).
const (
	shortestURL = 10 * time.Second
	shortURL    = 5 * time.Minute
)

// checkBucket checks the bucket of boot data. CAPA's webhook has the other rules of names.
func (c *checks) checkBucket() {
	b := c.cluster.Infra.Spec.S3Bucket
	if b == nil {
		return
	}
	for _, prefix := range []string{"xn--", "sthree-", "amzn-s3-demo-"} { // "General purpose bucket naming rules", S3 user guide
		if strings.HasPrefix(b.Name, prefix) {
			c.fail(c.infra.Problem("spec.s3Bucket.name", fmt.Sprintf("S3 reserves names that begin with %s", prefix), "choose another name"))
		}
	}
	for _, suffix := range []string{"-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"} {
		if strings.HasSuffix(b.Name, suffix) {
			c.fail(c.infra.Problem("spec.s3Bucket.name", fmt.Sprintf("S3 reserves names that end in %s", suffix), "choose another name"))
		}
	}
	if strings.Contains(b.Name, "..") {
		c.fail(c.infra.Problem("spec.s3Bucket.name", fmt.Sprintf("%q: S3 permits no two periods side by side", b.Name), "change the name"))
	}
	c.checkLinks(b.PresignedURLDuration)
	c.checkIAMName(c.infra, "spec.s3Bucket.controlPlaneIAMInstanceProfile", b.ControlPlaneIAMInstanceProfile, "an instance profile")
	for i, name := range b.NodesIAMInstanceProfiles {
		c.checkIAMName(c.infra, fmt.Sprintf("spec.s3Bucket.nodesIAMInstanceProfiles[%d]", i), name, "an instance profile")
	}
}

// checkLinks checks the lifetime of the presigned URLs of boot data. With this field, the bucket policy allows no other way to read the objects.
func (c *checks) checkLinks(lasts *metav1.Duration) {
	const path = "spec.s3Bucket.presignedURLDuration"
	if lasts == nil {
		return
	}
	switch d := lasts.Duration; {
	case d > longestURL:
		c.fail(c.infra.Problem(path, fmt.Sprintf("%s: S3 permits at most %s", d, longestURL), "shorten it"))
	case d <= 0:
		c.fail(c.infra.Problem(path, fmt.Sprintf("%s: a link that never works, and without one no machine reads its boot data", d), "write 1h, or remove it"))
	case d < shortestURL:
		c.fail(c.infra.Problem(path, fmt.Sprintf("%s: the link to the boot data ends before the machine runs", d), "write 1h, or remove it"))
	case d < shortURL:
		c.warn(c.infra.Problem(
			path,
			fmt.Sprintf("%s: a machine that EC2 starts slowly reads its boot data too late, and does not join", d),
			"write 1h, or remove it",
		))
	}
}
