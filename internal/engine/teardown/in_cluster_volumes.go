package teardown

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// VolumesInCluster are the claims that EBS volumes were made for which are to
// go with them. Once a claim is being deleted no new pod that uses it is
// scheduled, so it is enough to delete those that do; but StatefulSets would
// make the claims anew, and are scaled down.
func VolumesInCluster(k *kube.Client) *InCluster {
	scaled, told := map[string]bool{}, map[string]bool{}
	return &InCluster{Kube: k, list: volumesInCluster, ask: func(ctx context.Context, k *kube.Client, have *InClusterState) error {
		var paths []string
		for _, p := range have.users {
			set := statefulSetOf(&p)
			if set == "" || scaled[set] {
				continue
			}
			err := k.Merge(ctx, set, map[string]any{"spec": map[string]any{"replicas": 0}})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			scaled[set] = true
		}
		for _, o := range have.objects {
			if !told[o.uid] {
				paths = append(paths, o.path)
			}
		}
		if err := deleteAll(ctx, k, paths); err != nil {
			return err
		}
		for _, o := range have.objects {
			told[o.uid] = true
		}
		paths = nil
		for _, p := range have.users {
			if p.Metadata.DeletionTimestamp == "" {
				paths = append(paths, "/api/v1/namespaces/"+p.Metadata.Namespace+"/pods/"+p.Metadata.Name)
			}
		}
		return deleteAll(ctx, k, paths)
	}}
}

// statefulSetOf is the path of the StatefulSet that makes a pod; "" for none.
func statefulSetOf(pod *inClusterObject) string {
	for _, o := range pod.Metadata.OwnerReferences {
		if o.Controller && o.Kind == "StatefulSet" {
			return "/apis/apps/v1/namespaces/" + pod.Metadata.Namespace + "/statefulsets/" + o.Name
		}
	}
	return ""
}

// volumesInCluster lists claims by the volumes they are bound to, which last
// until they are gone from AWS.
func volumesInCluster(ctx context.Context, k *kube.Client) (*InClusterState, error) {
	volumes, err := inClusterObjects(ctx, k, "/api/v1/persistentvolumes")
	if err != nil {
		return nil, err
	}
	s, claims := &InClusterState{}, map[string]bool{}
	for _, v := range volumes {
		claim := v.Spec.ClaimRef
		if claim.Name == "" || !goesWithClaim(&v) {
			continue
		}
		claims[claim.Namespace+"/"+claim.Name] = true
		s.objects = append(s.objects, held{
			name: "PersistentVolumeClaim " + claim.Namespace + "/" + claim.Name, uid: v.Metadata.UID,
			path: "/api/v1/namespaces/" + claim.Namespace + "/persistentvolumeclaims/" + claim.Name,
		})
	}
	if len(claims) == 0 {
		return s, nil
	}
	pods, err := inClusterObjects(ctx, k, "/api/v1/pods")
	for _, p := range pods {
		if p.Spec.NodeName != "" && uses(&p, claims) {
			s.users = append(s.users, p)
		}
	}
	return s, err
}

// goesWithClaim reports whether a PersistentVolume is one of EBS that is deleted
// when its claim is. One that could not be is not tried again.
func goesWithClaim(v *inClusterObject) bool {
	driver := v.Spec.CSI.Driver
	ebs := driver == "ebs.csi.aws.com" || driver == "ebs.csi.eks.amazonaws.com" || v.Spec.AWSElasticBlockStore != nil
	return ebs && v.Spec.PersistentVolumeReclaimPolicy == "Delete" && v.Status.Phase != "Failed"
}

func uses(pod *inClusterObject, claims map[string]bool) bool {
	for _, v := range pod.Spec.Volumes {
		name := v.PersistentVolumeClaim.ClaimName
		if v.Ephemeral != nil {
			name = pod.Metadata.Name + "-" + v.Name
		}
		if name != "" && claims[pod.Metadata.Namespace+"/"+name] {
			return true
		}
	}
	return false
}
