package kubernetes

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	classic "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
)

// ControllerTakes is how long controllers in a cluster take to notice a change.
const ControllerTakes = 5 * time.Second

// balancerFinalizer is the finalizer of a Service until its load balancer is deleted.
const balancerFinalizer = "service.kubernetes.io/load-balancer-cleanup"

// settleControllers runs the controllers in clusters that create and delete AWS
// resources: the AWS cloud controller manager, which EKS runs itself, and the EBS CSI
// driver.
func (svc *Service) settleControllers() {
	now := svc.Now()
	for _, host := range core.SortedKeys(svc.clusters) {
		c := svc.clusters[host]
		if c.Up.After(now) || len(c.All("Service"))+len(c.All("PersistentVolumeClaim"))+len(c.All("PersistentVolume")) == 0 {
			continue
		}
		c.Settle(now)
		in := controller{svc, c, host}
		if c.EKS != "" || c.Runs("cloud-controller-manager") {
			in.services()
		}
		if len(in.drivers()) > 0 {
			in.volumes()
		}
	}
}

// controller is a controller in a cluster.
type controller struct {
	*Service
	c    *kubesim.Cluster
	host string
}

// machines lists the instances of the cluster's Nodes.
func (in controller) machines() (out []*ec2.Instance) {
	for i := range in.EC2.Instances() {
		if i.Boot != nil && i.Boot.Host == in.host && i.Boot.Failed == "" && !i.Boot.Joined.IsZero() {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(x, y *ec2.Instance) int { return strings.Compare(x.ID, y.ID) })
	return out
}

// tag returns the cloud provider tag for new resources, from the machines.
func (in controller) tag() string {
	for _, i := range in.machines() {
		for k := range i.Tags {
			if strings.HasPrefix(k, "kubernetes.io/cluster/") {
				return k
			}
		}
	}
	return ""
}

func (in controller) old(o kubesim.Object) bool {
	born, _ := time.Parse(time.RFC3339, kubesim.Value(o, "metadata", "creationTimestamp")) // the simulator wrote it
	return in.Now().Sub(born) >= ControllerTakes
}

func (in controller) services() {
	for _, o := range in.c.All("Service") {
		going := kubesim.Going(o)
		switch {
		case kubesim.Value(o, "spec", "type") != "LoadBalancer" || kubesim.Value(o, "spec", "loadBalancerClass") != "":
		case going.IsZero() && !kubesim.Finalized(o, balancerFinalizer) && in.old(o):
			if in.serve(o) {
				in.c.Finalize(in.Now(), o, balancerFinalizer)
			}
		case !going.IsZero() && in.Now().Sub(going) >= ControllerTakes:
			if in.unserve(o) {
				in.c.Release(in.Now(), o, balancerFinalizer)
			}
		}
	}
}

// balancerName returns the name of a Service's load balancer.
func (in controller) balancerName(service kubesim.Object) string {
	sum := sha256.Sum256([]byte(in.host + kubesim.Value(service, "metadata", "uid")))
	return "a" + hex.EncodeToString(sum[:])[:31]
}

// serve creates a load balancer with its own security group, and permits that in the
// group of the machines. It reports whether it succeeded.
func (in controller) serve(o kubesim.Object) bool {
	machines, tag := in.machines(), in.tag()
	if len(machines) == 0 || tag == "" {
		return false
	}
	name, first := in.balancerName(o), machines[0]
	subnet := in.EC2.Subnet(first.Subnet)
	group := in.groupNamed("k8s-elb-" + name)
	if group == nil {
		group = in.EC2.NewGroup(in.EC2.VPC(subnet.VPC), "k8s-elb-"+name, "Security group for Kubernetes ELB "+name, map[string]string{tag: "owned"})
	}
	create := &classic.CreateLoadBalancerInput{
		LoadBalancerName: &name, SecurityGroups: []string{group.ID}, Subnets: []string{subnet.ID}, Scheme: aws.String("internal"),
		Listeners: []types.Listener{{Protocol: aws.String("TCP"), LoadBalancerPort: 80, InstanceProtocol: aws.String("TCP"), InstancePort: aws.Int32(30080)}},
		Tags: []types.Tag{
			{Key: &tag, Value: aws.String("owned")},
			{Key: aws.String("kubernetes.io/service-name"), Value: aws.String(kubesim.Value(o, "metadata", "namespace") + "/" + kubesim.Value(o, "metadata", "name"))},
		},
	}
	if _, err := in.ELB.CreateClassic(create); err != nil {
		return false // the controller tries again
	}
	for _, i := range machines {
		in.ELB.ClassicNamed(name).Instances[i.ID] = in.Now()
		for _, id := range i.Interfaces {
			for _, g := range in.EC2.Interface(id).Groups {
				in.letIn(in.EC2.SecurityGroup(g), group.ID)
			}
		}
	}
	o["status"] = kubesim.Object{"loadBalancer": kubesim.Object{"ingress": []any{kubesim.Object{"hostname": in.ELB.ClassicNamed(name).DNSName}}}}
	return true
}

// letIn permits traffic from one group to a group of the cluster.
func (in controller) letIn(g *ec2.SecurityGroup, group string) {
	r := ec2.Rule{Protocol: "-1", From: -1, To: -1, Group: group}
	if g.Tags[in.tag()] == "owned" && !slices.ContainsFunc(g.Ingress, r.Same) {
		r.ID = in.ID("sgr")
		g.Ingress = append(g.Ingress, r)
	}
}

func (in controller) groupNamed(name string) *ec2.SecurityGroup {
	for _, g := range in.EC2.SecurityGroups() {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// unserve deletes a load balancer, and its group after its interfaces. It reports whether
// all is deleted.
func (in controller) unserve(o kubesim.Object) bool {
	name := in.balancerName(o)
	_, _ = in.ELB.DeleteClassic(&classic.DeleteLoadBalancerInput{LoadBalancerName: &name}) // cannot fail
	group := in.groupNamed("k8s-elb-" + name)
	if group == nil {
		return true
	}
	for _, g := range in.EC2.SecurityGroups() {
		g.Ingress = slices.DeleteFunc(g.Ingress, func(r ec2.Rule) bool { return r.Group == group.ID })
	}
	if len(in.EC2.Users(group)) > 0 {
		return false
	}
	in.EC2.RemoveSecurityGroup(group)
	return true
}

// volumes creates volumes for claims, attaches them to the machines of pods, detaches
// them when their VolumeAttachment is deleted, and deletes released ones.
func (in controller) volumes() {
	for _, o := range in.c.All("PersistentVolumeClaim") {
		if kubesim.Value(o, "status", "phase") == "Pending" && kubesim.Going(o).IsZero() && in.old(o) {
			in.provision(o)
		}
	}
	for _, o := range in.c.All("PersistentVolume") {
		v := in.EC2.Volume(kubesim.Value(o, "spec", "csi", "volumeHandle"))
		claim := in.c.Get(
			"/api/v1/namespaces/" + kubesim.Value(o, "spec", "claimRef", "namespace") + "/persistentvolumeclaims/" + kubesim.Value(o, "spec", "claimRef", "name"),
		)
		attachment := in.c.Get("/apis/storage.k8s.io/v1/volumeattachments/csi-" + kubesim.Value(o, "metadata", "name"))
		switch released := kubesim.Value(o, "status", "phase") == "Released"; {
		case v == nil && released:
			in.c.Drop(o)
		case v == nil:
		case v.Instance == "" && !released && claim != nil:
			in.attach(o, claim, v)
		case v.Instance != "" && attachment == nil:
			in.detach(v)
		case v.Instance == "" && released && kubesim.Value(o, "spec", "persistentVolumeReclaimPolicy") == "Delete":
			in.EC2.RemoveVolume(v)
		}
	}
}

// drivers lists the provisioners whose volumes are made: the EBS CSI driver, and that of EKS Auto Mode, which runs outside of the
// cluster ("Create a storage class", EKS user guide).
func (in controller) drivers() (names []string) {
	plane := in.EKS.ClusterNamed(in.c.EKS)
	if in.c.Runs("ebs-csi-controller") && (in.c.EKS == "" || in.EKS.MakesVolumes(plane)) {
		names = append(names, "ebs.csi.aws.com")
	}
	if plane != nil && plane.Auto != nil {
		names = append(names, "ebs.csi.eks.amazonaws.com")
	}
	return names
}

// provision creates the volume of a claim, in the zone of the pod. The provisioner of the claim's StorageClass must
// be the driver; a class may wait for a pod (https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode).
func (in controller) provision(claim kubesim.Object) {
	class := in.c.Get("/apis/storage.k8s.io/v1/storageclasses/" + kubesim.Value(claim, "spec", "storageClassName"))
	machine := in.machineOf(in.c.UserOf(claim))
	driver := kubesim.Value(class, "provisioner")
	if !slices.Contains(in.drivers(), driver) || kubesim.Value(class, "volumeBindingMode") == "WaitForFirstConsumer" && machine == nil {
		return
	}
	if all := in.machines(); machine == nil && len(all) > 0 {
		machine = all[0]
	}
	if machine == nil {
		return
	}
	meta := func(key string) string { return kubesim.Value(claim, "metadata", key) }
	name := "pvc-" + meta("uid")
	v := in.EC2.AddVolume(&ec2.Volume{Zone: machine.Zone, Type: "gp3", Size: 8}, map[string]string{
		in.tag(): "owned", "Name": strings.TrimPrefix(in.tag(), "kubernetes.io/cluster/") + "-dynamic-" + name, "ebs.csi.aws.com/cluster": "true",
		"kubernetes.io/created-for/pvc/namespace": meta("namespace"), "kubernetes.io/created-for/pvc/name": meta("name"),
	})
	in.c.Put(in.Now(), kubesim.Object{
		"apiVersion": "v1",
		"kind":       "PersistentVolume",
		"metadata":   kubesim.Object{"name": name, "finalizers": []any{"external-provisioner.volume.kubernetes.io/finalizer"}},
		"spec": kubesim.Object{
			"persistentVolumeReclaimPolicy": cmp.Or(kubesim.Value(class, "reclaimPolicy"), "Delete"),
			"csi":                           kubesim.Object{"driver": driver, "volumeHandle": v.ID},
			"claimRef":                      kubesim.Object{"namespace": meta("namespace"), "name": meta("name"), "uid": meta("uid")},
		},
		"status": kubesim.Object{"phase": "Bound"},
	})
	claim["status"] = kubesim.Object{"phase": "Bound"}
	in.c.Put(in.Now(), claim)
}

// machineOf returns the instance of a pod; nil for none.
func (in controller) machineOf(pod kubesim.Object) *ec2.Instance {
	for _, i := range in.machines() {
		if pod != nil && i.Boot.Node == kubesim.Value(pod, "spec", "nodeName") {
			return i
		}
	}
	return nil
}

// attach attaches a volume to the machine of a pod, if that is in its zone.
func (in controller) attach(volume, claim kubesim.Object, v *ec2.Volume) {
	pod := in.c.UserOf(claim)
	machine := in.machineOf(pod)
	if machine == nil || machine.Zone != v.Zone {
		return
	}
	name := kubesim.Value(volume, "metadata", "name")
	in.c.Put(in.Now(), kubesim.Object{
		"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
		"metadata": kubesim.Object{"name": "csi-" + name, "annotations": kubesim.Object{
			"kubesim/pod": kubesim.Value(pod, "metadata", "namespace") + "/" + kubesim.Value(pod, "metadata", "name"),
		}},
		"spec": kubesim.Object{"nodeName": machine.Boot.Node, "source": kubesim.Object{"persistentVolumeName": name}},
	})
	v.Instance, v.Device = machine.ID, "/dev/xvdaa"
	machine.Volumes = append(machine.Volumes, v.ID)
}

func (in controller) detach(v *ec2.Volume) {
	if i := in.EC2.Instance(v.Instance); i != nil {
		i.Volumes = slices.DeleteFunc(i.Volumes, func(id string) bool { return id == v.ID })
	}
	v.Instance, v.Device = "", ""
}
