package eks

import (
	"fmt"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// span is a range of versions of an add-on: v<major>.<minor>.<patch>-eksbuild.<build>.
type span struct{ major, first, last, patches, builds int }

// spans returns the versions of an add-on that are plausible. Which builds EKS has published
// is not known here; a build that it never published may be among them.
func spans(addon, kubernetes string) []span {
	switch addon {
	case "kube-proxy":
		return []span{{1, minor(kubernetes), minor(kubernetes), ec2.LastPatch(minor(kubernetes)), 20}}
	case "coredns":
		return []span{{1, 11, 13, 4, 40}}
	case "vpc-cni":
		return []span{{1, 16, 21, 7, 6}}
	case "aws-ebs-csi-driver":
		return []span{{1, 28, 60, 2, 3}}
	case "aws-efs-csi-driver":
		return []span{{2, 0, 3, 15, 3}}
	case "aws-mountpoint-s3-csi-driver":
		return []span{{1, 5, 15, 2, 2}, {2, 0, 4, 2, 2}}
	case "amazon-cloudwatch-observability":
		return []span{{2, 0, 6, 2, 2}, {3, 0, 10, 2, 2}, {4, 0, 10, 2, 2}}
	case "eks-pod-identity-agent":
		return []span{{1, 0, 3, 12, 5}}
	case "eks-node-monitoring-agent":
		return []span{{1, 0, 6, 4, 3}}
	case "metrics-server":
		return []span{{0, 7, 8, 2, 8}}
	case "snapshot-controller":
		return []span{{8, 0, 5, 2, 3}}
	}
	return nil
}

// plausible returns the versions of an add-on for a version of Kubernetes that the catalogue
// does not list, the newest first. They are no default.
func (e *addonEntry) plausible(kubernetes string) (more []addonVersion) {
	listed := map[string]bool{}
	for _, v := range e.versions {
		listed[v.version] = true
	}
	for _, s := range spans(e.name, kubernetes) {
		for m := s.last; m >= s.first; m-- {
			for p := s.patches; p >= 0; p-- {
				for b := s.builds; b > 0; b-- {
					name := fmt.Sprintf("v%d.%d.%d-eksbuild.%d", s.major, m, p, b)
					if !listed[name] {
						more = append(more, addonVersion{version: name, from: kubernetes, to: kubernetes})
					}
				}
			}
		}
	}
	return more
}
