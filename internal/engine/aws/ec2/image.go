package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// ImageState is an AMI.
type ImageState struct {
	ID, Name, RootDevice string
	Architecture         string // x86_64 or arm64
	RootSize             int32  // GiB
	RootType             string // gp3, …
	BootMode             string // legacy-bios, uefi or uefi-preferred; "" for that of the instance type
	TPM, NoENA           bool   // it needs NitroTPM; it lacks the driver of the Elastic Network Adapter
	Windows              bool
	Lost                 string // why no machine starts with it; "" if one does
}

// CloudID implements graph.State.
func (s ImageState) CloudID() string { return s.ID }

// Absent implements Absentee.
func (s ImageState) Absent() string { return s.Lost }

// ImageQuery is the query with which CAPA finds an image when the manifest does not set
// spec.ami.id (pkg/cloud/services/ec2/ami.go).
type ImageQuery struct {
	Name         string // a pattern of the filter "name"
	Owner        string
	Architecture string
	Version      string // Kubernetes version, for messages
}

// ImageByID looks up an AMI by its ID.
func ImageByID(id string) graph.Lookup[ImageState] {
	return func(ctx context.Context, c *cloud.Clients) (*ImageState, error) {
		all, err := cloud.Remember(ctx, c, "image "+id, func(ctx context.Context) ([]types.Image, error) {
			out, err := c.EC2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{id}})
			if err != nil {
				return nil, err
			}
			return out.Images, nil
		})
		if cloud.Is(err, "InvalidAMIID.NotFound", "InvalidAMIID.Malformed", "InvalidAMIID.Unavailable") || err == nil && len(all) == 0 {
			return nil, fmt.Errorf(
				"image %s does not exist in %s, or is not shared with this account: use another image, or restore it from the Recycle Bin", id, c.Region,
			)
		}
		if err != nil {
			return nil, err
		}
		if err := unavailable(all[0]); err != nil {
			return nil, err
		}
		return imageState(all[0]), nil
	}
}

// unavailable says why no machine starts from an image: only one that is available can be used ("State", Image in the EC2 API reference).
func unavailable(x types.Image) error {
	id, reason := aws.ToString(x.ImageId), ""
	if x.StateReason != nil && aws.ToString(x.StateReason.Message) != "" {
		reason = " (" + aws.ToString(x.StateReason.Message) + ")"
	}
	switch x.State { //nolint:exhaustive // the others are those of images that nobody can use
	case "", types.ImageStateAvailable:
		return nil
	case types.ImageStatePending, types.ImageStateTransient:
		return fmt.Errorf("image %s is %s: wait until it is available (aws ec2 wait image-available --image-ids %[1]s), or use another one", id, x.State)
	}
	return fmt.Errorf("image %s is %s%s, not available: use another one", id, x.State, reason)
}

// ImageFor looks up an AMI by its ID, and checks that its architecture is that of the
// instance type, if that is known.
func ImageFor(id, instanceType, architecture string) graph.Lookup[ImageState] {
	find := ImageByID(id)
	return func(ctx context.Context, c *cloud.Clients) (*ImageState, error) {
		s, err := find(ctx, c)
		other := map[string]string{"x86_64": "arm64", "arm64": "x86_64"}[architecture] // an x86_64 instance also runs i386
		if s != nil && other != "" && s.Architecture == other {
			return nil, fmt.Errorf(
				"image %s is for %s, and instance type %s is %s: set an image for %[4]s, or another instance type",
				id,
				s.Architecture,
				instanceType,
				architecture,
			)
		}
		return s, err
	}
}

// ImageNames returns the names of images by their IDs. Those that do not exist any more are
// not in it.
func ImageNames(ctx context.Context, c *cloud.Clients, ids []string) (map[string]string, error) {
	names := map[string]string{}
	if len(ids) == 0 {
		return names, nil
	}
	out, err := c.EC2.DescribeImages(ctx, &ec2.DescribeImagesInput{Filters: []types.Filter{cloud.Filter("image-id", ids...)}})
	if err != nil {
		return nil, err
	}
	for _, x := range out.Images {
		names[aws.ToString(x.ImageId)] = aws.ToString(x.Name)
	}
	return names, nil
}

// ImageByName looks up the newest AMI that matches a query.
func ImageByName(q ImageQuery) graph.Lookup[ImageState] {
	return func(ctx context.Context, c *cloud.Clients) (*ImageState, error) {
		all, err := describeImages(ctx, c, q.filters())
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, q.missing(ctx, c)
		}
		return newestImage(all), nil
	}
}

func (q ImageQuery) filters() []types.Filter {
	return []types.Filter{
		cloud.Filter("owner-id", q.Owner), cloud.Filter("name", q.Name), cloud.Filter("architecture", q.Architecture),
		cloud.Filter("state", "available"), cloud.Filter("virtualization-type", "hvm"),
	}
}

// ImageByParameter looks up the AMI in a public SSM parameter of AWS.
func ImageByParameter(name string) graph.Lookup[ImageState] {
	return func(ctx context.Context, c *cloud.Clients) (*ImageState, error) {
		id, err := cloud.Remember(ctx, c, "parameter "+name, func(ctx context.Context) (string, error) {
			out, err := c.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
			if err != nil {
				return "", err
			}
			return aws.ToString(out.Parameter.Value), nil
		})
		if cloud.NotFound(err) {
			return nil, fmt.Errorf(
				"AWS has no recommended image in %s (the parameter %s does not exist): use a version of Kubernetes that EKS offers, or set ami.id",
				c.Region,
				name,
			)
		}
		if err != nil {
			return nil, err
		}
		return ImageByID(id)(ctx, c)
	}
}

// AWS accounts of Canonical.
const (
	canonical         = "099720109477"
	canonicalGovCloud = "513442679011"
)

// UbuntuImage looks up the newest Ubuntu 24.04 image of Canonical. CAPA uses it for the
// bastion (pkg/cloud/services/ec2/bastion.go).
func UbuntuImage(region string) graph.Lookup[ImageState] {
	owner := canonical
	if strings.HasPrefix(region, "us-gov-") {
		owner = canonicalGovCloud
	}
	return func(ctx context.Context, c *cloud.Clients) (*ImageState, error) {
		all, err := describeImages(ctx, c, []types.Filter{
			cloud.Filter("owner-id", owner), cloud.Filter("architecture", "x86_64"), cloud.Filter("state", "available"),
			cloud.Filter("virtualization-type", "hvm"), cloud.Filter("description", "Canonical??Ubuntu??24.04??amd64?noble?image*"),
		})
		if err == nil && len(all) == 0 {
			err = errors.New("no image of Ubuntu 24.04 by Canonical in the region: set spec.bastion.ami")
		}
		if err != nil {
			return nil, err
		}
		return newestImage(all), nil
	}
}

// Published lists the AMIs with a name, also those that their owners have deprecated, which EC2 still launches.
func Published(ctx context.Context, c *cloud.Clients, name string) (found []PublishedImage, err error) {
	return cloud.Remember(ctx, c, "published images "+name, func(ctx context.Context) (found []PublishedImage, err error) {
		p := ec2.NewDescribeImagesPaginator(c.EC2, &ec2.DescribeImagesInput{Filters: []types.Filter{cloud.Filter("name", name)}, IncludeDeprecated: aws.Bool(true)})
		all, err := cloud.Pages(ctx, p, func(o *ec2.DescribeImagesOutput) []types.Image { return o.Images })
		for _, x := range all {
			found = append(found, PublishedImage{aws.ToString(x.Name), aws.ToString(x.Description)})
		}
		return found, err
	})
}

// PublishedImage is what the owner of an AMI says of it.
type PublishedImage struct{ Name, Description string }

func describeImages(ctx context.Context, c *cloud.Clients, filters []types.Filter) ([]types.Image, error) {
	var query []string
	for _, f := range filters {
		query = append(query, aws.ToString(f.Name)+"="+strings.Join(f.Values, ","))
	}
	return cloud.Remember(ctx, c, "images "+strings.Join(query, " "), func(ctx context.Context) ([]types.Image, error) {
		p := ec2.NewDescribeImagesPaginator(c.EC2, &ec2.DescribeImagesInput{Filters: filters})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeImagesOutput) []types.Image { return o.Images })
	})
}

func newestImage(all []types.Image) *ImageState {
	return imageState(slices.MaxFunc(all, func(a, b types.Image) int {
		return cmp.Compare(aws.ToString(a.CreationDate), aws.ToString(b.CreationDate))
	}))
}

func imageState(x types.Image) *ImageState {
	s := &ImageState{ID: aws.ToString(x.ImageId), Name: aws.ToString(x.Name), RootDevice: aws.ToString(x.RootDeviceName), Architecture: string(x.Architecture)}
	s.BootMode, s.TPM, s.NoENA = string(x.BootMode), x.TpmSupport != "", x.EnaSupport != nil && !*x.EnaSupport
	s.Windows = x.Platform == types.PlatformValuesWindows
	for _, m := range x.BlockDeviceMappings {
		if m.Ebs != nil && aws.ToString(m.DeviceName) == s.RootDevice {
			s.RootSize, s.RootType = aws.ToInt32(m.Ebs.VolumeSize), string(m.Ebs.VolumeType)
		}
	}
	return s
}

// imageKind declares AMIs.
func imageKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: "image", Area: plan.AreaPrerequisites, ReadActions: []string{"ec2:DescribeImages"},
	}, kind.Functions[ImageState]{
		Status: func(s ImageState) (state, detail string) { return "", s.Name },
	})
}
