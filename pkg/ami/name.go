// Package ami finds, lists and copies the machine images that Cluster API
// Provider AWS boots machines with.
package ami

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Owner is the account that publishes the images: the CNCF's.
const Owner = "819546954734"

// X8664 and Arm64 are the architectures that images are published for.
const (
	X8664 = string(types.ArchitectureValuesX8664)
	Arm64 = string(types.ArchitectureValuesArm64)
)

// DefaultOS is copied where no operating system is named.
const DefaultOS = "ubuntu-24.04"

// OperatingSystems are those that images are looked for of, in upstream's
// order, which is that of its rows.
func OperatingSystems() []string {
	return []string{"centos-7", "ubuntu-24.04", "ubuntu-22.04", "amazon-2", "flatcar-stable", "rhel-8"}
}

// prefix begins the name of every image: capa-ami-<os>-<version>-<stamp>, the
// version with or without a v, and in older builds with -00 before the stamp.
const prefix = "capa-ami-"

// tail takes apart what follows the operating system. All between the numbers
// and the stamp is a pre-release.
var tail = regexp.MustCompile(`^v?(\d+(?:\.\d+)*(?:-[0-9A-Za-z.]+)*?)(?:-00)?-([^-]+)$`)

// preRelease is what a pre-release ends with, and no stamp.
var preRelease = regexp.MustCompile(`^(alpha|beta|rc)(\.\d+)*$`)

// versionIn returns the version of Kubernetes, without a v, that the name of
// an image of an operating system tells, and false for any other name.
func versionIn(name, os string) (version string, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix+os+"-")
	if !ok {
		return "", false
	}
	part := tail.FindStringSubmatch(rest)
	if part == nil {
		return "", false
	}
	version = part[1]
	if preRelease.MatchString(part[2]) { // a name without a stamp
		version += "-" + part[2]
	}
	return version, true
}

// Matches reports whether an image's name says that it is of that operating
// system and that version, which may have a v or not. A pre-release is not the
// release.
func Matches(name, os, version string) bool {
	v, ok := versionIn(name, os)
	return ok && v == strings.TrimPrefix(version, "v")
}

// patterns are the filter's values for names of images of an operating system
// and a version, "" for any. AWS takes the values for alternatives.
func patterns(os, version string) []string {
	plain := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`)
	head := prefix + plain.Replace(os) + "-"
	if version == "" {
		return []string{head + "*"}
	}
	version = plain.Replace(strings.TrimPrefix(version, "v"))
	return []string{head + "v" + version + "-*", head + version + "-*"}
}

// filters are those of all questions for images.
func filters(architectures, names []string) []types.Filter {
	filter := func(name string, values ...string) types.Filter {
		return types.Filter{Name: aws.String(name), Values: values}
	}
	return []types.Filter{
		filter("name", names...), filter("architecture", architectures...), filter("state", "available"), filter("virtualization-type", "hvm"),
	}
}

// release is a version of Kubernetes that is no pre-release.
type release struct{ major, minor, patch int }

func (r release) String() string { return fmt.Sprintf("v%d.%d.%d", r.major, r.minor, r.patch) }

func (r release) compare(s release) int {
	return cmp.Or(cmp.Compare(r.major, s.major), cmp.Compare(r.minor, s.minor), cmp.Compare(r.patch, s.patch))
}

// parseRelease reads a version, with or without a v.
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

// minors is how many minor versions are listed.
const minors = 4

// upTo lists the versions of minors of which the latest patch is given, the
// newest minor first, in upstream's order: of the newest the patches before
// its latest, then that; of the others the latest first.
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

// newestMinors returns the latest patch of each of the newest minors among
// releases.
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
