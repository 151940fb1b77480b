// Package ami finds, lists and copies the machine images of Cluster API Provider AWS.
package ami

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Owner is the account that publishes the images, which belongs to the CNCF.
const Owner = "819546954734"

// X8664 and Arm64 are the architectures of published images.
const (
	X8664 = string(types.ArchitectureValuesX8664)
	Arm64 = string(types.ArchitectureValuesArm64)
)

// DefaultOS is the default operating system of Copy.
const DefaultOS = "ubuntu-24.04"

// OperatingSystems returns the operating systems of published images, in upstream's
// order, which is the order of rows.
func OperatingSystems() []string {
	return []string{"centos-7", "ubuntu-24.04", "ubuntu-22.04", "amazon-2", "flatcar-stable", "rhel-8"}
}

// prefix is the first part of image names: capa-ami-<os>-<version>-<stamp>. The version
// may have a v, and older builds have -00 before the stamp.
const prefix = "capa-ami-"

// tail parses the part after the operating system. Text between the numbers and the stamp
// is a pre-release.
const tail = `^v?(\d+(?:\.\d+)*(?:-[0-9A-Za-z.]+)*?)(?:-00)?-([^-]+)$`

// preRelease matches the end of a pre-release, as opposed to a stamp.
const preRelease = `^(alpha|beta|rc)(\.\d+)*$`

// versionIn returns the Kubernetes version without v in the name of an image of an
// operating system, and false for any other name.
func versionIn(name, os string) (version string, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix+os+"-")
	if !ok {
		return "", false
	}
	part := regex.Of(tail).FindStringSubmatch(rest)
	if part == nil {
		return "", false
	}
	version = part[1]
	if regex.Of(preRelease).MatchString(part[2]) { // a name without a stamp
		version += "-" + part[2]
	}
	return version, true
}

// Matches reports whether the name of an image has the operating system and the version,
// which may begin with v. A pre-release does not match the release.
func Matches(name, os, version string) bool {
	v, ok := versionIn(name, os)
	return ok && v == strings.TrimPrefix(version, "v")
}

// patterns returns alternative values of the name filter for an operating system and a
// version; "" means any version.
func patterns(os, version string) []string {
	plain := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`)
	head := prefix + plain.Replace(os) + "-"
	if version == "" {
		return []string{head + "*"}
	}
	version = plain.Replace(strings.TrimPrefix(version, "v"))
	return []string{head + "v" + version + "-*", head + version + "-*"}
}

// filters returns the filters of all queries for images.
func filters(architectures, names []string) []types.Filter {
	filter := func(name string, values ...string) types.Filter {
		return types.Filter{Name: aws.String(name), Values: values}
	}
	return []types.Filter{
		filter("name", names...), filter("architecture", architectures...), filter("state", "available"), filter("virtualization-type", "hvm"),
	}
}

// release is a Kubernetes version without pre-release.
type release struct{ major, minor, patch int }

func (r release) String() string { return fmt.Sprintf("v%d.%d.%d", r.major, r.minor, r.patch) }

func (r release) compare(s release) int {
	return cmp.Or(cmp.Compare(r.major, s.major), cmp.Compare(r.minor, s.minor), cmp.Compare(r.patch, s.patch))
}

// parseRelease parses a version, with or without v.
func parseRelease(s string) (r release, ok bool) {
	parts := strings.Split(strings.TrimPrefix(strings.TrimSpace(s), "v"), ".")
	if len(parts) != 3 {
		return r, false
	}
	for i, to := range []*int{&r.major, &r.minor, &r.patch} {
		n, err := strconv.ParseUint(parts[i], 10, 16)
		if err != nil {
			return r, false
		}
		*to = int(n)
	}
	return r, true
}

// minors is the number of minor versions to list.
const minors = 4

// upTo lists the versions of minors, given the latest patch of each, in upstream's order:
// the newest minor first, with its earlier patches before its latest; the other minors
// begin with the latest.
func upTo(latest []release) (versions []string) {
	slices.SortStableFunc(latest, func(a, b release) int { return b.compare(a) })
	for i, r := range latest {
		if i > 0 {
			versions = append(versions, r.String())
		}
		for p := r.patch - 1; p >= 0; p-- {
			versions = append(versions, release{r.major, r.minor, p}.String())
		}
		if i == 0 {
			versions = append(versions, r.String())
		}
	}
	return versions
}

// newestMinors returns the latest patch of each of the newest minors.
func newestMinors(all []release) (latest []release) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b release) int { return b.compare(a) })
	for _, r := range all {
		if n := len(latest); n > 0 && latest[n-1].major == r.major && latest[n-1].minor == r.minor {
			continue
		}
		if len(latest) == minors {
			break
		}
		latest = append(latest, r)
	}
	return latest
}
