package topology

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/blang/semver/v4"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	words "github.com/clusterawsadm/clusterawsadm/internal/text"
)

// ControlPlaneFile returns the content of the file that the machines of the control plane have at a
// path; nil if the manifest has none.
func ControlPlaneFile(m *manifest.Cluster, path string) ([]byte, error) {
	spec := controlPlaneSpec(m)
	if spec == nil {
		return nil, nil
	}
	return boot.FileContent(spec, inputs{m: m}.secret, path)
}

// controlPlaneSpec returns the configuration of the machines of the control plane.
func controlPlaneSpec(m *manifest.Cluster) *bootstrapv1.KubeadmConfigSpec {
	if m.ControlPlane != nil {
		return &m.ControlPlane.Object.Spec.KubeadmConfigSpec
	}
	for _, x := range m.Machines {
		if x.ControlPlane && x.Bootstrap != nil {
			return &x.Bootstrap.Spec
		}
	}
	return nil
}

// GivenEndpoint returns the host and port of the API server that the manifest sets; "" if it sets
// none.
func GivenEndpoint(m *manifest.Cluster) string {
	e := bootdata.Endpoint{Host: m.Infra.Spec.ControlPlaneEndpoint.Host, Port: m.APIPort()}
	if given := m.Object.Spec.ControlPlaneEndpoint; given.Host != "" {
		e.Host, e.Port = given.Host, given.Port
	}
	if e.Host == "" {
		return ""
	}
	return e.String()
}

// Restore is a snapshot of etcd, with the keys of its cluster.
type Restore struct {
	State secrets.RestoreState
	Count int // keys in the snapshot
	Keys  *boot.PKI
	Seal  func(w io.Writer, keys *secrets.PKIState) error // as in secrets.Restore
}

// restoring returns the restore that the run begins or continues; nil for none.
func (in inputs) restoring() *secrets.RestoreState {
	switch {
	case in.o.Restore != nil:
		return &in.o.Restore.State
	case in.inv.Restore != nil && !in.inv.Restore.Done:
		return in.inv.Restore
	}
	return nil
}

// checkRestore returns why a snapshot cannot be restored: that would make a second control plane.
func (in inputs) checkRestore() error {
	if in.o.Restore == nil {
		return nil
	}
	config, _ := in.clusterConfiguration()
	var alive []string
	for _, m := range in.inv.Machines {
		if m.Tags[cloud.RoleTag] == RoleControlPlane && !m.IsTerminating() {
			alive = append(alive, m.ID+" ("+m.Status+")")
		}
	}
	begun := in.inv.Restore
	switch {
	case in.m.EKS != nil:
		return errors.New("AWS runs the etcd of an EKS cluster: a snapshot cannot be restored")
	case len(config.Etcd.External.Endpoints) > 0:
		return errors.New("the cluster uses an external etcd: restore the snapshot where it runs")
	case !in.usesAPIServer():
		return errors.New("a restore has to wait for the API server: use --wait=api, joined or ready")
	case len(alive) > 0 && (begun == nil || begun.Done || begun.Snapshot != in.o.Restore.State.Snapshot):
		return fmt.Errorf(
			"the control plane has machines: %s. A snapshot is restored only after all of them are gone. If etcd cannot get its quorum back, terminate them, and run again",
			words.Several(alive),
		)
	}
	return nil
}

// givenKeys are the keys of the backup, or those of the manifest.
func (in inputs) givenKeys() *boot.PKI {
	if in.o.Restore != nil {
		return in.o.Restore.Keys
	}
	return boot.GivenPKI(in.m.Name, in.m.Secrets)
}

// addRestore adds the record of the snapshot that the control plane begins with; nil for none.
func addRestore(g *graph.Graph, in inputs, sources bootSources) *bootdata.Restore {
	want := in.restoring()
	if want == nil || in.m.EKS != nil {
		return nil
	}
	r := &secrets.Restore{Want: *want, PKI: sources.keys, After: graph.On(sources.bucket)}
	if in.o.Restore != nil {
		r.Seal = in.o.Restore.Seal
	}
	return &bootdata.Restore{Record: graph.Add(g, secrets.RestoreRecordKind, r, graph.From("snapshot of "+want.Taken.UTC().Format(time.RFC3339)))}
}

// finishRestore deletes the Nodes of machines that are gone, and ends the restore, after the control
// plane has joined.
func finishRestore(g *graph.Graph, restore *bootdata.Restore, k kubernetes) {
	if restore == nil || k.server == nil {
		return
	}
	joined := graph.Awaits(k.controlPlaneNodes...)
	lost := graph.Retire(
		g,
		"node-objects/restored",
		&incluster.NodeObjects{API: k.api, Server: k.server, Lost: true, After: joined},
		graph.From("in the snapshot, without a machine"),
	)
	graph.Expect(g, "restored", &secrets.Restored{Record: restore.Record, After: append(joined, graph.Awaits(lost)...)}, graph.From(restore.Record.Origin()))
}

// restoreRemarks say what a restore replaces.
func (in inputs) restoreRemarks() []string {
	r := in.o.Restore
	if r == nil {
		return nil
	}
	return []string{
		fmt.Sprintf(
			"the control plane begins with the snapshot of %s (revision %d, %s): all that was changed in the cluster after that is lost; workers stay, and pods that the snapshot does not have are stopped",
			r.State.Taken.UTC().Format(time.RFC3339),
			r.State.Revision,
			words.Count(r.Count, "key"),
		),
	}
}

// ControlPlaneVersion returns the version of Kubernetes that the manifest wants for its control
// plane.
func ControlPlaneVersion(m *manifest.Cluster) string {
	if m.ControlPlane != nil {
		return m.ControlPlane.Object.Spec.Version
	}
	for _, x := range m.Machines {
		if x.ControlPlane {
			return x.Object.Spec.Version
		}
	}
	return ""
}

// ServerArgument returns an argument of the API server in the manifest; "" if it is not set.
func ServerArgument(m *manifest.Cluster, name string) string {
	spec := controlPlaneSpec(m)
	if spec == nil {
		return ""
	}
	return boot.Argument(spec.ClusterConfiguration.APIServer.ExtraArgs, name)
}

// EtcdVersion returns the version of etcd that the control plane of the manifest runs; "" if it is not
// known.
func EtcdVersion(m *manifest.Cluster) string {
	if spec := controlPlaneSpec(m); spec != nil && spec.ClusterConfiguration.Etcd.Local.ImageTag != "" {
		return spec.ClusterConfiguration.Etcd.Local.ImageTag
	}
	// DefaultEtcdVersion in k8s.io/kubernetes/cmd/kubeadm/app/constants: 3.5 until Kubernetes 1.33.
	if v, err := semver.ParseTolerant(ControlPlaneVersion(m)); err == nil && v.LT(semver.MustParse("1.34.0-0")) {
		return "3.5"
	}
	return ""
}
