package ec2

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// lastPatches are the newest patch releases of Kubernetes that were known when this
// program was built, by minor version.
func lastPatches() map[int]int {
	return map[int]int{27: 16, 28: 15, 29: 15, 30: 14, 31: 14, 32: 13, 33: 13, 34: 13, 35: 10, 36: 6, 37: 2}
}

// LastPatch returns the newest patch release of a minor version of Kubernetes.
func LastPatch(minor int) int { return lastPatches()[minor] }

// released reports whether a version of Kubernetes, "1.34.2", exists.
func released(major, minor, patch string) bool {
	m, _ := strconv.Atoi(minor)
	p, err := strconv.Atoi(patch)
	last, ok := lastPatches()[m]
	return major == "1" && ok && err == nil && p <= last && patch == strconv.Itoa(p)
}

// versionPattern finds a version in the pattern of an image name.
const versionPattern = `(\d+)\.(\d+)\.(\d+)`

// askedVersions returns the versions of Kubernetes that exist and that the name filters
// contain. A filter for all versions of an operating system, such as
// "capa-ami-ubuntu-24.04-?*-*", contains all.
func askedVersions(filters []types.Filter) (versions []string) {
	for _, f := range filters {
		if aws.ToString(f.Name) != "name" {
			continue
		}
		for _, pattern := range f.Values {
			if regex.Of(ofAnyVersion).MatchString(pattern) {
				return allVersions()
			}
			for _, m := range regex.Of(versionPattern).FindAllStringSubmatch(pattern, -1) {
				if released(m[1], m[2], m[3]) {
					versions = append(versions, m[0])
				}
			}
		}
	}
	return versions
}

// ofAnyVersion matches the pattern of an image name with an operating system and any version.
const ofAnyVersion = `^capa-ami-[a-z0-9.-]+-[v?]*\*-`

// allVersions lists the versions of Kubernetes that have images.
func allVersions() (versions []string) {
	for minor, last := range lastPatches() {
		for patch := range last + 1 {
			versions = append(versions, fmt.Sprintf("1.%d.%d", minor, patch))
		}
	}
	return versions
}

// publishAsked adds the images of the versions that a call names. The images of all versions
// would be thousands; a call without a version shows those of ImagesIn only.
func (svc *Service) publishAsked(where place, filters []types.Filter) {
	if where.region != svc.Region && !slices.Contains(published(), where.region) {
		return
	}
	for _, version := range askedVersions(filters) {
		if slices.Contains(listedVersions(), version) {
			continue
		}
		for _, i := range imagesOf(where.region, version) {
			if where.Images[i.ID] == nil && (where.region != svc.Region || !svc.state.hides(i)) {
				where.Images[i.ID] = i
			}
		}
	}
}

// givenImage returns a public image.
func givenImage(region, owner, name, description, architecture, device string, created int64) *Image {
	at := time.Unix(created, 0).UTC()
	return &Image{
		Thing: Thing{ID: GivenID("ami", region, name), Tags: map[string]string{}, Born: at, Given: true},
		Name:  name, Owner: owner, Description: description, Architecture: architecture, RootDevice: device, Created: at, RootSize: 8,
	}
}

const day = 24 * 60 * 60

// clusterImages calls a function for each operating system and architecture of Cluster API's
// images of a version.
func clusterImages(version string, add func(m, k int, base, architecture, device, description string)) {
	for m, base := range []string{"ubuntu-24.04", "ubuntu-22.04", "flatcar-stable"} {
		device := map[bool]string{true: "/dev/xvda", false: "/dev/sda1"}[base == "flatcar-stable"]
		for k, architecture := range []string{"x86_64", "arm64"} {
			add(m, k, base, architecture, device, "Kubernetes v"+version+" on "+base)
		}
	}
}

// imagesOf returns Cluster API's images of a version that is not among listedVersions, built
// at about the time of its release.
func imagesOf(region, version string) (images []*Image) {
	var minor, patch int64
	_, _ = fmt.Sscanf(version, "1.%d.%d", &minor, &patch)
	clusterImages(version, func(m, k int, base, architecture, device, description string) {
		at := 1_692_000_000 + (minor-28)*120*day + patch*30*day + int64(m)*3600 + int64(k)*600
		name := fmt.Sprintf("capa-ami-%s-v%s-%d", base, version, at)
		images = append(images, givenImage(region, communityImages, name, description, architecture, device, at))
	})
	return images
}

// listedVersions are the versions of Kubernetes with several images each.
func listedVersions() []string {
	return []string{"1.28.3", "1.30.0", "1.31.0", "1.32.4", "1.33.0", "1.34.0", "1.34.2"}
}

// ImagesIn returns the images of a region that are always there. There are several for each
// version, and their order by name is not the order by age.
func ImagesIn(region string) (images []*Image) {
	for n, version := range listedVersions() {
		clusterImages(version, func(m, k int, base, architecture, device, description string) {
			built := 1_700_000_000 + int64(n)*120*day + int64(m)*3600 + int64(k)*600
			for build := range int64(3) {
				at := built + build*20*day
				name := fmt.Sprintf("capa-ami-%s-v%s-%d", base, version, at)
				images = append(images, givenImage(region, communityImages, name, description, architecture, device, at))
			}
			// An older image whose name is the last.
			name := fmt.Sprintf("capa-ami-%s-v%s-rebuilt-%d", base, version, k)
			images = append(images, givenImage(region, communityImages, name, description, architecture, device, built-day))
		})
	}
	for n := range int64(3) {
		at := 1_740_000_000 + n*30*day
		for kind, architecture := range map[string]string{"amd64": "x86_64", "arm64": "arm64"} {
			name := "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-" + kind + "-server-" + time.Unix(at, 0).UTC().Format("20060102")
			images = append(images, givenImage(region, canonicalImages, name, "Canonical, Ubuntu, 24.04, "+kind+" noble image", architecture, "/dev/sda1", at))
		}
	}
	return images
}
