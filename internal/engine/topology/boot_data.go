package topology

import (
	"slices"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// bootSources has the resources that boot data contains, or is stored in.
type bootSources struct {
	endpoint bootdata.Endpoint
	bucket   *graph.Ref[s3.BucketState]
	keys     *graph.Ref[secrets.PKIState] // nil on EKS
	record   recordedNames
	token    *incluster.CurrentToken // nil if no machine joins with a token
	restore  *bootdata.Restore       // nil if the control plane is not restored
}

// addCertificates adds the certificates and keys of a kubeadm cluster.
func addCertificates(g *graph.Graph, in inputs) *graph.Ref[secrets.PKIState] {
	config, origin := in.clusterConfiguration()
	return graph.Add(g, "certificates", &secrets.PKI{
		FromManifest: in.givenKeys(), Used: in.inv.Initialized && !in.beginsNewEtcd() || in.hasControlPlane(), Stored: in.launchedControlPlane(),
		Algorithm: string(config.EncryptionAlgorithm), Days: config.CACertificateValidityPeriodDays,
	}, graph.From(origin), graph.DeletedAfter(everything))
}

// everything selects all resources for graph.DeletedAfter. The keys are deleted last, so a deletion
// that stops halfway leaves them to the machines that still exist.
func everything(plan.ID) bool { return true }

// isMachine selects machines for graph.DeletedAfter and graph.DeletedBehind, also those that leave.
func isMachine(id plan.ID) bool { return id.Kind() == ec2.MachineKind || id.Kind() == "retired" }

// addBootstrapSecrets adds the secrets and parameters from which machines fetch their
// boot data: a deletion deletes those that machines have not deleted.
func addBootstrapSecrets(g *graph.Graph, in inputs) recordedNames {
	record := recordedNames{names: &secrets.BootstrapNames{}}
	ids := map[boot.Backend]plan.ID{boot.SecretsManager: "bootstrap-secrets", boot.ParameterStore: "bootstrap-parameters"}
	for _, backend := range []boot.Backend{boot.SecretsManager, boot.ParameterStore} {
		if !slices.ContainsFunc(in.groupsAndPools(nil), func(x group) bool { return backendOf(x) == backend }) {
			continue
		}
		if backend == boot.SecretsManager {
			record.ref = graph.Add(g, "bootstrap-names", record.names)
		}
		graph.Sweep(g, ids[backend], &secrets.BootstrapSecrets{Backend: backend, Names: record.ref})
	}
	return record
}

// recordedNames is the record of the names of secrets.
type recordedNames struct {
	names *secrets.BootstrapNames
	ref   *graph.Ref[secrets.BootstrapNamesState]
}

// recorded adds boot data that will be stored to the record of names.
func (sources bootSources) recorded(d *bootdata.Data) *bootdata.Data {
	if d.Plain == nil && d.Backend == boot.SecretsManager {
		sources.record.names.Add(boot.Prefix(d.Backend, d.Prefix, d.ID))
		d.Names = sources.record.ref
	}
	return d
}

// deleteBootData deletes stored boot data after its machines have joined, if the run waits
// for that. Machines of the control plane delete their secrets themselves, but have no
// permission to delete objects.
func deleteBootData(g *graph.Graph, in inputs, sources bootSources, planned machinePlan, machines []Machine) {
	if in.o.Adopt {
		return // an import deletes nothing
	}
	for _, x := range planned.groups {
		backend, shared := backendOf(x.group), []graph.Resource{}
		for _, m := range machines {
			if m.Group != x.name || m.ControlPlane != x.controlPlane {
				continue
			}
			node := g.Resource(plan.ID("node/" + m.place()))
			if x.controlPlane && node != nil && backend == boot.ObjectStore {
				data := in.bootData(sources, x.group, m.Instance.ID(), m.name, boot.JoinControlPlane)
				graph.Retire(g, plan.ID("boot-data/"+m.place()), &bootdata.Spent{Data: data, Nodes: []graph.Resource{node}}, graph.From(x.origin))
			}
			shared = append(shared, node)
		}
		if !x.controlPlane && backend != boot.UserData && len(shared) > 0 && !slices.Contains(shared, nil) {
			data := in.bootData(sources, x.group, "", "", boot.JoinWorker)
			graph.Retire(g, plan.ID("boot-data/"+x.name), &bootdata.Spent{Data: data, Nodes: shared}, graph.From(x.origin))
		}
	}
}

// deleteUnusedBootData deletes the boot data that a run has stored for machines and pools that it did not launch, because it was interrupted, and that
// are not in the manifest any more.
func deleteUnusedBootData(g *graph.Graph, in inputs, sources bootSources, planned machinePlan, machines []Machine, pools []scalingPool) {
	if in.o.Adopt {
		return // an import deletes nothing
	}
	unused := &bootdata.Unused{Bucket: sources.bucket}
	for _, d := range usedBootData(g, in, sources, planned, machines, pools) {
		if d.Plain == nil {
			unused.Used = append(unused.Used, d.Place())
			unused.Parameters = unused.Parameters || d.Backend == boot.ParameterStore
		}
	}
	unused.Prefixes = slices.DeleteFunc(slices.Clone(in.inv.BootSecrets), func(prefix string) bool {
		return slices.ContainsFunc(unused.Used, func(p bootdata.Place) bool { return p.Backend == boot.SecretsManager && p.Prefix == prefix })
	})
	if len(unused.Prefixes) == 0 && !unused.Parameters && unused.Bucket == nil {
		return
	}
	after := append(runPods(g), graph.Awaits(slices.Concat(machinesLeaving(g), resourcesOf(g, "boot-data"))...)...)
	found := graph.Retire(g, "boot-data/unused", unused, graph.From("no longer in the manifest"), graph.With(after))
	if sources.record.ref == nil {
		secrets.RetireBootstrapNames(g, graph.Awaits(found))
	}
}

// usedBootData lists the boot data of machines and pools, and of those that have it until they have joined, or are gone.
func usedBootData(g *graph.Graph, in inputs, sources bootSources, planned machinePlan, machines []Machine, pools []scalingPool) (used []*bootdata.Data) {
	add := func(d *bootdata.Data) { used = append(used, d) }
	for _, x := range planned.groups {
		for _, m := range machines {
			if m.Group == x.name && m.ControlPlane == x.controlPlane {
				add(in.bootData(sources, x.group, m.Instance.ID(), m.name, x.role(place{})))
			}
		}
	}
	for _, pool := range pools {
		add(in.poolData(sources, pool.group))
	}
	for _, r := range resourcesOf(g, "boot-data") {
		switch d := r.Desired().(type) {
		case *bootdata.Spent:
			add(d.Data)
		case *bootdata.Left:
			for _, b := range []boot.Backend{boot.SecretsManager, boot.ParameterStore, boot.ObjectStore} {
				add(&bootdata.Data{Backend: b, ID: in.secretID("machine/" + d.Name), Object: bootdata.PoolFolder + d.Name})
			}
		}
	}
	return used
}

// secretID is the ID of the secrets of a machine or a group.
func (in inputs) secretID(of string) string { return bootdata.SecretID(in.m.Namespace, in.m.Name, of) }

// backendOf returns the backend of a group's bootstrap data.
func backendOf(x group) boot.Backend {
	s := x.spec
	switch {
	case x.eks != nil && x.eks.Nodeadm != nil: // nodeadm reads the user data itself
		return boot.UserData
	case x.kubeadm == nil && x.eks == nil:
		return boot.UserData
	case x.kubeadm != nil && x.kubeadm.Format == "ignition" || s.Ignition != nil:
		if s.Ignition != nil && s.Ignition.StorageType == infrav1.IgnitionStorageTypeOptionUnencryptedUserData {
			return boot.UserData
		}
		return boot.ObjectStore
	case s.CloudInit.InsecureSkipSecretsManager:
		return boot.UserData
	case x.pool && x.eks == nil && s.IAMInstanceProfile == "": // no credentials to fetch it; CAPA has that of all pools in the user data
		return boot.UserData
	case s.CloudInit.SecureSecretsBackend == infrav1.SecretBackendSSMParameterStore:
		return boot.ParameterStore
	}
	return boot.SecretsManager
}

// role says whether kubeadm initializes the cluster on the machine, or joins it.
func (x groupPlan) role(at place) boot.Role {
	switch {
	case !x.controlPlane:
		return boot.JoinWorker
	case at.initializes:
		return boot.Init
	}
	return boot.JoinControlPlane
}

// bootData returns the boot data of a machine. Workers of a group share it, and it is
// named after the group; that of a machine of the control plane is named after the
// machine.
func (in inputs) bootData(sources bootSources, x group, id plan.ID, machine string, role boot.Role) *bootdata.Data {
	if x.kubeadm == nil && x.eks == nil {
		return &bootdata.Data{Plain: x.data}
	}
	name, secret, owner, folder := x.name, "machine/"+x.name, ec2.GroupResourceTag(string(id)), bootdata.WorkersFolder
	switch {
	case x.controlPlane:
		name, secret, owner, folder = machine, string(id), string(id), bootdata.ControlPlaneFolder
	case x.pool:
		folder = bootdata.PoolFolder // not machine-pool/, where a rule of CAPA deletes objects after a day
	}
	d := &bootdata.Data{
		Group: x.name, EKS: x.eks, Endpoint: sources.endpoint, PKI: sources.keys, Backend: backendOf(x), Prefix: x.spec.CloudInit.SecretPrefix,
		Uncompressed: x.spec.UncompressedUserData, Ignition: x.spec.Ignition, Bucket: sources.bucket,
		ID: in.secretID(secret), Object: folder + name, Keep: !x.controlPlane,
		Tags: in.machineTags(x.roleTag(), nil).With(cloud.Tags{"Name": name, cloud.ResourceTag: owner}),
	}
	if s := in.spec.S3Bucket; s != nil && s.PresignedURLDuration != nil {
		d.Presigned = s.PresignedURLDuration.Duration
	}
	if x.kubeadm == nil {
		return d
	}
	spec := *x.kubeadm
	if in.renewsToken(x) {
		spec = boot.KeepToken(spec, TokenTTL)
	}
	d.Given = in.givenKeys()
	d.Machine = boot.Machine{Role: role, Version: x.version, Cluster: in.m.Object, Spec: spec, TokenTTL: TokenTTL, Secret: in.secret}
	if role == boot.Init {
		d.Restore = sources.restore
	}
	if sources.token != nil && d.Machine.JoinsByToken() {
		d.Token = sources.token
	}
	return d
}
