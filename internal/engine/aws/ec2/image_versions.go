package ec2

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/blang/semver/v4"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Versions lists the Kubernetes versions of the images that the query finds with any version
// instead of its own, from the oldest. It is empty if the name does not contain the version.
func (q ImageQuery) Versions(ctx context.Context, c *cloud.Clients) ([]semver.Version, error) {
	images, err := q.ofAnyVersion(ctx, c)
	return versionsOf(images), err
}

// NamesVersion reports whether the image depends on the Kubernetes version.
func (q ImageQuery) NamesVersion() bool { return q.anyVersion() != q.Name }

// anyVersion returns the name with "*" in place of the version, as a filter of DescribeImages.
func (q ImageQuery) anyVersion() string {
	version := strings.TrimPrefix(q.Version, "v")
	if version == "" {
		return q.Name
	}
	return strings.Replace(q.Name, version, "*", 1)
}

func (q ImageQuery) ofAnyVersion(ctx context.Context, c *cloud.Clients) ([]types.Image, error) {
	if !q.NamesVersion() {
		return nil, nil
	}
	q.Name = q.anyVersion()
	return describeImages(ctx, c, q.filters())
}

// capaImage matches the names of CAPA's images.
const capaImage = `^(capa-ami(?:-(.*))?-v?)(1\.\d+\.\d+)-`

// CAPAImage returns the operating system and the version of Kubernetes in the name of an image
// of CAPA's: "ubuntu-24.04" and "v1.34.2" for "capa-ami-ubuntu-24.04-v1.34.2-1761230124". Both
// are "" for other names.
func CAPAImage(name string) (system, version string) {
	m := regex.Of(capaImage).FindStringSubmatch(name)
	if m == nil {
		return "", ""
	}
	return m[2], "v" + m[3]
}

// QueriesOf returns, by the ID of an image, the query that finds images with its operating
// system, version, architecture and owner. It omits images without a name of CAPA's.
func QueriesOf(ctx context.Context, c *cloud.Clients, ids []string) (map[string]ImageQuery, error) {
	found := map[string]ImageQuery{}
	if len(ids) == 0 {
		return found, nil
	}
	images, err := describeImages(ctx, c, []types.Filter{cloud.Filter("image-id", ids...)})
	for _, x := range images {
		if m := regex.Of(capaImage).FindStringSubmatch(aws.ToString(x.Name)); m != nil {
			found[aws.ToString(x.ImageId)] = ImageQuery{
				Name: m[1] + m[3] + "-*", Owner: aws.ToString(x.OwnerId), Architecture: string(x.Architecture), Version: "v" + m[3],
			}
		}
	}
	return found, err
}

// missing returns the error for an image that does not exist, with the Kubernetes versions
// that have one.
func (q ImageQuery) missing(ctx context.Context, c *cloud.Clients) error {
	text := fmt.Sprintf("no image for Kubernetes %s in %s (name %s, owner %s, %s)", q.Version, c.Region, q.Name, q.Owner, q.Architecture)
	// Without permission or answer, the hint has no versions.
	if images, err := q.ofAnyVersion(ctx, c); err == nil {
		if near := nearestVersions(q.Version, images); len(near) > 0 {
			return fmt.Errorf("%s: the nearest versions with images are %s; use one of them, or set ami.id", text, strings.Join(near, ", "))
		}
	}
	return fmt.Errorf("%s: set ami.id, or see 'clusterawsadm ami list --kubernetes-version %s'", text, q.Version)
}

// versionInName matches the Kubernetes version in the name of an image.
const versionInName = `v?(\d+\.\d+\.\d+)`

// versionsOf lists the Kubernetes versions in the names of images, from the oldest.
func versionsOf(images []types.Image) (found []semver.Version) {
	for _, i := range images {
		if m := regex.Of(versionInName).FindStringSubmatch(aws.ToString(i.Name)); m != nil {
			if v, err := semver.Parse(m[1]); err == nil {
				found = append(found, v)
			}
		}
	}
	slices.SortFunc(found, semver.Version.Compare)
	return slices.CompactFunc(found, semver.Version.Equals)
}

// nearestVersions returns up to three versions in the names of images: those of the same
// minor version first, and newer ones before older ones.
func nearestVersions(wanted string, images []types.Image) (near []string) {
	want, err := semver.ParseTolerant(wanted)
	if err != nil {
		return nil
	}
	found := versionsOf(images)
	distance := func(v semver.Version) uint64 { return max(v.Minor, want.Minor) - min(v.Minor, want.Minor) }
	slices.SortFunc(found, func(a, b semver.Version) int { return cmp.Or(cmp.Compare(distance(a), distance(b)), b.Compare(a)) })
	for _, v := range found[:min(len(found), 3)] {
		near = append(near, "v"+v.String())
	}
	return near
}
