package discover

import (
	"context"
	"fmt"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// readTemplates reads the launch templates that the cluster owns, and the lifecycle hooks of the
// node groups.
func (e *EKS) readTemplates(ctx context.Context, c *cloud.Clients) error {
	e.Templates, e.Hooks = map[string]ec2.TemplateContent{}, map[string][]expinfrav1.AWSLifecycleHook{}
	owned, err := ec2.LaunchTemplatesIfAllowed(ctx, c)
	if err != nil {
		return fmt.Errorf("launch templates: %w", err)
	}
	for _, g := range e.NodeGroups {
		if slices.ContainsFunc(owned, func(t ec2.LaunchTemplateState) bool { return t.ID == g.Template }) {
			if e.Templates[g.Name], err = ec2.TemplateContentOf(ctx, c, g.Template, "$Latest"); err != nil {
				return fmt.Errorf("launch template %s of node group %s: %w", g.Template, g.Name, err)
			}
		}
		if g.ScalingGroup == "" {
			continue
		}
		hooks, err := autoscaling.HookSpecs(ctx, c, g.ScalingGroup)
		switch {
		case cloud.Denied(err):
			e.Unread = append(e.Unread, fmt.Sprintf("the lifecycle hooks of node group %s, because the caller lacks autoscaling:DescribeLifecycleHooks", g.Name))
		case err != nil:
			return fmt.Errorf("lifecycle hooks of node group %s: %w", g.Name, err)
		}
		e.Hooks[g.Name] = slices.DeleteFunc(hooks, func(h expinfrav1.AWSLifecycleHook) bool { return slices.Contains(eks.OwnHooks(), h.Name) })
	}
	return nil
}

// readWorkers reads the machines and Auto Scaling groups of the cluster that are no node groups.
func (e *EKS) readWorkers(ctx context.Context, c *cloud.Clients) (err error) {
	e.Workers = &SelfManaged{plane: e, Name: e.Name, Region: e.Region, Namespace: defaultNamespace, Network: e.Network, Pinned: map[string]bool{}}
	if e.Workers.Machines, err = ec2.Instances(ctx, c); err != nil {
		return fmt.Errorf("machines of the cluster: %w", err)
	}
	if err := e.Workers.readSecurity(ctx, c); err != nil {
		return err
	}
	return e.Workers.readMachines(ctx, c)
}

// eksImage says how the image of a launch template is looked up.
type eksImage struct {
	version string                   // "v1.34.0"; "" if it is not known
	lookup  infrav1.EKSAMILookupType // "" if it is not the image that EKS recommends now
}

// eksImageName matches the names of EKS's images of Amazon Linux, with the version of Kubernetes.
const eksImageName = `^amazon-eks-[a-z0-9_-]+-(1\.\d+)-v\d+$`

// readImages finds out how the images of launch templates and machines are looked up.
func (e *EKS) readImages(ctx context.Context, c *cloud.Clients) error {
	e.images = map[string]eksImage{}
	for _, id := range e.imageIDs() {
		image, err := ec2.ImageByID(id)(ctx, c)
		if err == nil { // otherwise it was deleted, or is not shared any more
			e.images[id] = lookupOf(ctx, c, image)
		}
	}
	return nil
}

// imageIDs lists the images of launch templates and machines.
func (e *EKS) imageIDs() (ids []string) {
	for _, t := range e.Templates {
		ids = append(ids, t.Image)
	}
	for _, p := range e.Workers.Pools {
		ids = append(ids, p.Template.Image)
	}
	for _, m := range e.Workers.Machines {
		ids = append(ids, m.Image)
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
}

// lookupOf finds the lookup that returns an image now.
func lookupOf(ctx context.Context, c *cloud.Clients, image *ec2.ImageState) (found eksImage) {
	match := regex.Of(eksImageName).FindStringSubmatch(image.Name)
	if match == nil {
		return found
	}
	found.version = "v" + match[1] + ".0"
	for _, kind := range []infrav1.EKSAMILookupType{infrav1.AmazonLinux2023, infrav1.AmazonLinux2023GPU, infrav1.AmazonLinux, infrav1.AmazonLinuxGPU} {
		newest, err := ec2.ImageByParameter(topology.EKSImageParameter(match[1], kind, image.Architecture))(ctx, c)
		if err == nil && newest.ID == image.ID {
			found.lookup = kind
		}
	}
	return found
}

// newerImage is the comment at the ID of an image.
const newerImage = "There is a newer image: without this ID, a run would replace the machines."

// launchTemplate returns the launch template of a node group.
func (e *EKS) launchTemplate(t ec2.TemplateContent) map[string]any {
	spec := t.Spec
	if t.Image != "" {
		if lookup := e.images[t.Image].lookup; lookup != "" {
			spec.AMI.EKSOptimizedLookupType = &lookup
		} else {
			spec.AMI.ID = &t.Image
		}
	}
	for _, id := range e.additionalGroups(t.Groups) {
		spec.AdditionalSecurityGroups = append(spec.AdditionalSecurityGroups, infrav1.AWSResourceReference{ID: &id})
	}
	return tree(spec)
}

// additionalGroups lists those of some security groups that EKS and Cluster API do not give to
// every node.
func (e *EKS) additionalGroups(ids []string) []string {
	return slices.DeleteFunc(slices.Sorted(slices.Values(ids)), func(id string) bool { return id == e.Cluster.Group || e.Workers.roleOf(id) != "" })
}

// templateConfig returns the bootstrap configuration of a launch template; none if EKS makes the
// user data.
func (e *EKS) templateConfig(t ec2.TemplateContent, pool string) []Object {
	name := pool
	if _, given, ok := strings.Cut(t.InstanceTags[infrav1.LaunchTemplateBootstrapDataSecret], "/"); ok {
		name = given
	}
	if len(t.UserData) == 0 {
		return nil
	}
	b, version := e.Booted[t.ID], eksbootstrapv1.GroupVersion.String()
	if b == nil {
		out := object(version, "NodeadmConfig", name, map[string]any{})
		out.comment("spec", "Not known: what the nodes boot with.")
		return []Object{out}
	}
	out := object(version, "NodeadmConfig", name, tree(b.Nodeadm))
	if b.Config != nil {
		out = object(version, "EKSConfig", name, tree(b.Config))
	}
	if len(b.LeftOut) > 0 {
		out.comment("spec", "Left out: "+strings.Join(b.LeftOut, ", ")+".")
	}
	return []Object{out}
}

// translate converts the elements of a list.
func translate[From, To any](from []From, f func(From) To) (to []To) {
	for _, x := range from {
		to = append(to, f(x))
	}
	return to
}
