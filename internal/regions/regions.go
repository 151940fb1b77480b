// Package regions knows the names of the regions of AWS.
package regions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// All lists the regions of all partitions that were known when this program was built
// (partitions.json of the AWS CLI). There may be newer ones.
func All() []string {
	return strings.Fields(`
		af-south-1 ap-east-1 ap-east-2 ap-northeast-1 ap-northeast-2 ap-northeast-3 ap-south-1 ap-south-2
		ap-southeast-1 ap-southeast-2 ap-southeast-3 ap-southeast-4 ap-southeast-5 ap-southeast-6 ap-southeast-7
		ca-central-1 ca-west-1 eu-central-1 eu-central-2 eu-north-1 eu-south-1 eu-south-2 eu-west-1 eu-west-2 eu-west-3
		il-central-1 me-central-1 me-south-1 mx-central-1 sa-east-1 us-east-1 us-east-2 us-west-1 us-west-2
		cn-north-1 cn-northwest-1 us-gov-east-1 us-gov-west-1 eusc-de-east-1
		us-iso-east-1 us-iso-west-1 us-isob-east-1 us-isob-west-1 eu-isoe-west-1 us-isof-east-1 us-isof-south-1`)
}

// Malformed returns why a text cannot be the name of any region, not even of one that is newer than this program: it is a zone, or it is
// not written as names of regions are. It returns "" if it can. Signatures of requests contain the name as it is written ("Signature
// Version 4", IAM user guide).
func Malformed(region string) string {
	lower := strings.ToLower(region)
	switch zone, near := strings.TrimRight(lower, "abcdef"), suggest.Nearest(lower, All()); {
	case region == "" || slices.Contains(All(), region):
		return ""
	case slices.Contains(All(), lower):
		return fmt.Sprintf("%s is not the name of a region: AWS writes it as %s", region, lower)
	case slices.Contains(All(), zone):
		return fmt.Sprintf("%s is a zone, and not a region: the region is %s", region, zone)
	case !regex.Of(form).MatchString(region) && near != "":
		return fmt.Sprintf("%q is not the name of a region: did you mean %s?", region, near)
	case !regex.Of(form).MatchString(region):
		return fmt.Sprintf("%q is not the name of a region, such as us-east-1", region)
	}
	return ""
}

// form is how names of regions are written.
const form = `^[a-z]{2,}(-[a-z]+)+-\d+$`

// Remark says that a region is not known, and which one may be meant; "" for a known region.
func Remark(region string) string {
	if region == "" || slices.Contains(All(), region) {
		return ""
	}
	remark := fmt.Sprintf("region %s is not one of those that were known when this program was built", region)
	if near := suggest.Nearest(region, All()); near != "" {
		remark += ": did you mean " + near + "?"
	}
	return remark
}
