package ec2

import (
	"context"
	"slices"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// A machine that runs needs neither its image, nor its key pair, nor its instance profile. A pool has these in its launch template, whether or not
// it launches machines: without them, it can still be scaled down.

// Absentee is the state of something that machines start with.
type Absentee interface {
	// Absent returns why no machine can start with it; "" if machines can.
	Absent() string
}

// CheckAbsent refuses a pool whose machines do not start, because something that its launch template names does not exist any more. idle reports
// whether a run launches none in the pool that exists, and names neither the template nor the subnets: then it is no reason to refuse.
func CheckAbsent[S graph.State](
	ctx context.Context, c *cloud.Clients, t *LaunchTemplate, find graph.Lookup[S], idle func(have *S) bool,
) (refusal string, err error) {
	if t == nil {
		return "", nil
	}
	if refusal = Absent(t.Needs()); refusal == "" {
		return "", nil
	}
	have, err := find(ctx, c)
	if err != nil || have != nil && idle(have) {
		return "", err
	}
	return refusal, nil
}

// Absent returns why machines with these edges do not start; "" if they do.
func Absent(edges []graph.Edge) string {
	for _, e := range edges {
		if s, is := e.Resource.Observed().(Absentee); is && s.Absent() != "" {
			return s.Absent()
		}
	}
	return ""
}

// Kept returns find for the launch template of a pool. If what it looks up does not exist any more, and the latest version of the template has it,
// that is no error: instead returns a state that says why no machine starts with it, or nil if the template has another one. For a machine, t is
// nil, and Kept returns find itself.
func Kept[S graph.State](t *LaunchTemplate, find graph.Lookup[S], instead func(have *LaunchTemplateState, why string) *S) graph.Lookup[S] {
	if t == nil {
		return find
	}
	return func(ctx context.Context, c *cloud.Clients) (*S, error) {
		s, err := find(ctx, c)
		if err == nil || cloud.Code(err) != "" || ctx.Err() != nil {
			return s, err
		}
		have, failed := t.Find(ctx, c)
		if failed != nil || have == nil {
			return s, err
		}
		if kept := instead(have, err.Error()); kept != nil {
			return kept, nil
		}
		return s, err
	}
}

// KeptImage returns the image with an ID if the latest version of the template has it, otherwise nil.
func (t *LaunchTemplate) KeptImage(id string) func(have *LaunchTemplateState, why string) *ImageState {
	return func(have *LaunchTemplateState, why string) *ImageState {
		if have.Content["imageId"] != id {
			return nil
		}
		s := &ImageState{ID: id, Lost: why}
		for _, device := range have.Devices {
			if !slices.ContainsFunc(t.Spec.NonRootVolumes, func(v infrav1.Volume) bool { return v.DeviceName == device }) {
				s.RootDevice = device
			}
		}
		return s
	}
}

// KeptKey returns the key pair with a name if the latest version of a template has it, otherwise nil.
func KeptKey(name string) func(have *LaunchTemplateState, why string) *Named {
	return keptName("keyName", name, name)
}

// KeptProfile returns the instance profile with a name if the latest version of a template has it, otherwise nil.
func KeptProfile(name string) func(have *LaunchTemplateState, why string) *Named {
	return keptName("iamInstanceProfile", "name "+name, name)
}

func keptName(parameter, value, name string) func(have *LaunchTemplateState, why string) *Named {
	return func(have *LaunchTemplateState, why string) *Named {
		if have.Content[parameter] != value {
			return nil
		}
		return &Named{Name: name, Lost: why}
	}
}
