package rules

import (
	"fmt"
	"strings"
	"time"
)

// longestURL is how long a presigned URL of S3 works at most ("Sharing objects with presigned URLs", S3 user guide).
const longestURL = 7 * 24 * time.Hour

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
	if d := b.PresignedURLDuration; d != nil && d.Duration > longestURL {
		c.fail(c.infra.Problem("spec.s3Bucket.presignedURLDuration", fmt.Sprintf("%s: S3 permits at most %s", d.Duration, longestURL), "shorten it"))
	}
	c.checkIAMName(c.infra, "spec.s3Bucket.controlPlaneIAMInstanceProfile", b.ControlPlaneIAMInstanceProfile, "an instance profile")
	for i, name := range b.NodesIAMInstanceProfiles {
		c.checkIAMName(c.infra, fmt.Sprintf("spec.s3Bucket.nodesIAMInstanceProfiles[%d]", i), name, "an instance profile")
	}
}
