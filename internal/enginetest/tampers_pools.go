package enginetest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// replaces returns the machines that are replaced when a field of a launch template is
// restored, as in a plan: with a new version, all of the pool.
func replaces(n plan.ID, field string) string {
	name, ok := strings.CutPrefix(string(n), "launch-template/")
	if !ok || strings.HasPrefix(field, "tag ") {
		return ""
	}
	if group, ok := strings.CutPrefix(name, "eks-templates-"); ok {
		return "node-group/default_" + group + ": launchTemplate.version"
	}
	return "auto-scaling-group/" + name + ": machines"
}

// unversioned removes launch template versions, since restoring creates another one, of
// which the plan checks the content; and the records of the lock, which count runs.
func unversioned(lines []string) (out []string) {
	version := regexp.MustCompile(`/v\d+/|aws:ec2launchtemplate:version=\d+|versions=\d+`)
	for _, l := range lines {
		if !strings.HasPrefix(l, "LaunchTemplate ") && !IsLock(l) {
			out = append(out, version.ReplaceAllString(l, ""))
		}
	}
	slices.Sort(out)
	return out
}

// relabel changes a tag of the resources that a launch template launches.
func relabel(s *awssim.State, id, key string) {
	for _, spec := range Content(s, id).TagSpecifications {
		for i := range spec.Tags {
			if *spec.Tags[i].Key == key {
				spec.Tags[i].Value = aws.String(tampered)
			}
		}
	}
}

// poolTampers returns the changes that TestTamper makes to Auto Scaling groups and launch
// templates.
func poolTampers() map[string]Tamper {
	return map[string]Tamper{
		"launch-template instanceType": func(s *awssim.State, id, _ string) { Content(s, id).InstanceType = "t3.small" },
		"launch-template imageId": func(s *awssim.State, id, _ string) {
			Content(s, id).ImageId = aws.String("ami-00000000000000000")
		},
		"launch-template iamInstanceProfile": func(s *awssim.State, id, _ string) {
			Content(s, id).IamInstanceProfile.Name = aws.String(tampered)
		},
		"launch-template metadataOptions": func(s *awssim.State, id, _ string) {
			Content(s, id).MetadataOptions.HttpPutResponseHopLimit = aws.Int32(7)
		},
		"launch-template securityGroupIds": func(s *awssim.State, id, _ string) {
			Content(s, id).SecurityGroupIds = Content(s, id).SecurityGroupIds[1:]
		},
		"launch-template blockDeviceMappings": func(s *awssim.State, id, _ string) {
			Content(s, id).BlockDeviceMappings[0].Ebs.VolumeSize = aws.Int32(77)
		},
		"launch-template bootstrapData": func(s *awssim.State, id, _ string) {
			relabel(s, id, "sigs.k8s.io/cluster-api-provider-aws/bootstrap-data-hash")
		},
		"launch-template launched": func(s *awssim.State, id, field string) {
			relabel(s, id, strings.TrimPrefix(field, "launched tag "))
		},
		"auto-scaling-group minSize":  func(s *awssim.State, id, _ string) { s.AutoScaling.Groups[id].Min = 0 },
		"auto-scaling-group maxSize":  func(s *awssim.State, id, _ string) { s.AutoScaling.Groups[id].Max += 3 },
		"auto-scaling-group replicas": func(s *awssim.State, id, _ string) { s.AutoScaling.Groups[id].Desired++ },
		"auto-scaling-group subnet": func(s *awssim.State, id, _ string) {
			s.AutoScaling.Groups[id].Subnets = s.AutoScaling.Groups[id].Subnets[1:]
		},
		"auto-scaling-group launchTemplate": func(s *awssim.State, id, _ string) {
			if g := s.AutoScaling.Groups[id]; g.Template != nil {
				g.Template.Version = "1"
			} else {
				g.Mixed.LaunchTemplate.LaunchTemplateSpecification.Version = aws.String("1")
			}
		},
		"auto-scaling-group mixedInstancesPolicy": func(s *awssim.State, id, _ string) {
			s.AutoScaling.Groups[id].Mixed.InstancesDistribution.OnDemandBaseCapacity = aws.Int32(3)
		},
		"auto-scaling-group capacityRebalance": func(s *awssim.State, id, _ string) {
			s.AutoScaling.Groups[id].Rebalance = !s.AutoScaling.Groups[id].Rebalance
		},
		"auto-scaling-group defaultCoolDown":       func(s *awssim.State, id, _ string) { s.AutoScaling.Groups[id].Cooldown = 7 },
		"auto-scaling-group defaultInstanceWarmup": func(s *awssim.State, id, _ string) { s.AutoScaling.Groups[id].Warmup = aws.Int32(7) },
		"auto-scaling-group suspendedProcess":      func(s *awssim.State, id, _ string) { clear(s.AutoScaling.Groups[id].Suspended) },
		"auto-scaling-group lifecycleHook": func(s *awssim.State, id, field string) {
			delete(s.AutoScaling.Groups[id].Hooks, strings.TrimPrefix(field, "lifecycleHook "))
		},
		"auto-scaling-group tag": func(s *awssim.State, id, field string) {
			if key := strings.TrimPrefix(field, "tag "); key == cloud.ResourceTag {
				delete(s.AutoScaling.Groups[id].Tags, key)
			} else {
				s.AutoScaling.Groups[id].Tags[key] = awssim.ScalingTag{Value: tampered}
			}
		},
	}
}
