package secrets

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// InitMarkerKind is the name of the kind of the init marker.
const InitMarkerKind = "init-marker"

// InitMarker is the SSM parameter that records which machine runs kubeadm init. If that
// machine is lost, its replacement joins the control plane: a second kubeadm init would
// create a second cluster behind the same endpoint.
//
// The parameter also records the endpoint of the API server and those settings of kubeadm init
// that cannot be changed later. A plan compares them with the manifest, even if the API server
// does not answer.
type InitMarker struct {
	Cluster string // name
	Machine *graph.Ref[ec2.InstanceState]
	Network ClusterNetwork
	// Endpoint is the host and port of the API server, or graph.Unknown. Certificates, boot
	// data and kubeconfigs contain it.
	Endpoint fmt.Stringer
	After    []graph.Edge
	// Replaces is the machine of the marker whose etcd is lost, and after which a new etcd is begun;
	// "" for none. The marker is free before the next machine is launched (FreeMarker).
	Replaces string
}

// ClusterNetwork is the part of spec.clusterNetwork of the Cluster that kubeadm init stores in
// the cluster.
type ClusterNetwork struct {
	Pods     string `json:"pods,omitempty"`     // CIDR blocks, separated by commas
	Services string `json:"services,omitempty"` // CIDR blocks, separated by commas
	Domain   string `json:"domain,omitempty"`   // DNS domain of Services
}

// InitMarkerState is the value of the SSM parameter, a JSON object.
type InitMarkerState struct {
	Machine  string `json:"machine"`
	Endpoint string `json:"endpoint,omitempty"` // "" from earlier versions
	ClusterNetwork
	// Epoch is how often a new etcd was begun after the machines of the one before were lost, and Since
	// when: machines that were launched before belong to a cluster that does not exist any more. Until
	// a machine runs kubeadm init, Machine is "".
	Epoch int       `json:"epoch,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Lost  []string  `json:"lost,omitempty"` // IDs of the machines that the marker named before

	parameter string // only in listings: the ID of the machine is there already
}

// CloudID implements graph.State.
func (s InitMarkerState) CloudID() string { return cmp.Or(s.parameter, s.Machine) }

// free reports whether no machine runs kubeadm init for the epoch of the marker yet.
func (s *InitMarkerState) free() bool { return s.Machine == "" }

var (
	_ graph.Desired[InitMarkerState] = (*InitMarker)(nil)
	_ graph.Creator[InitMarkerState] = (*InitMarker)(nil)
	_ graph.Deleter[InitMarkerState] = (*InitMarker)(nil)
)

// Needs implements graph.Desired.
func (m *InitMarker) Needs() []graph.Edge { return append(graph.Reads(m.Machine), m.After...) }

// Find implements graph.Desired.
func (m *InitMarker) Find(ctx context.Context, c *cloud.Clients) (*InitMarkerState, error) {
	s, err := ReadInitMarker(ctx, c)
	if s == nil || err != nil || s.free() || s.Machine == m.Replaces {
		return nil, err
	}
	return s, nil
}

// Diff implements graph.Desired.
func (m *InitMarker) Diff(have *InitMarkerState) (d plan.Diff) {
	d.Fixed("pods", have.Pods, m.Network.Pods)
	d.Fixed("services", have.Services, m.Network.Services)
	d.Fixed("serviceDomain", have.Domain, m.Network.Domain)
	d.Advise("kubeadm init has stored it in the cluster: set spec.clusterNetwork of the Cluster back, or create another cluster")
	if have.Endpoint != "" || have.Machine == "" {
		want, deleted := m.Endpoint.String(), ""
		if want == plan.Unknown && have.Endpoint != "" {
			want = "that of a load balancer that does not exist"
			deleted = fmt.Sprintf(". If the load balancer was deleted, AWS does not give its name again: with a backup, delete the cluster, and "+
				"create it with --restore FILE; without one, terminate the machines of the control plane, and run with --new-etcd=%s, which begins with an empty etcd", m.Cluster)
		}
		d.Fixed("endpoint", have.Endpoint, want)
		d.Advise("machines, certificates and kubeconfigs contain it: set the load balancer and controlPlaneEndpoint back, or create another cluster" + deleted)
	}
	return d
}

// Create implements graph.Creator.
func (m *InitMarker) Create(ctx context.Context, c *cloud.Clients) (*InitMarkerState, error) {
	s := InitMarkerState{Machine: m.Machine.CloudID(), Endpoint: m.Endpoint.String(), ClusterNetwork: m.Network}
	have, version, err := storedMarker(ctx, c)
	if err != nil {
		return nil, err
	}
	if have != nil && have.free() {
		s.Epoch, s.Since, s.Lost = have.Epoch, have.Since, have.Lost
		return &s, s.replace(ctx, c, version)
	}
	_, err = s.put(ctx, c, false)
	return &s, err
}

// put writes the marker, and returns the version of the parameter.
func (s *InitMarkerState) put(ctx context.Context, c *cloud.Clients, overwrite bool) (version int64, err error) {
	value, err := json.Marshal(s)
	if err != nil {
		return 0, err
	}
	out, err := c.SSM.PutParameter(ctx, &ssm.PutParameterInput{
		Name: aws.String(c.ParameterPath(initParameter)), Value: aws.String(string(value)), Type: types.ParameterTypeString, Overwrite: aws.Bool(overwrite),
	})
	if err != nil {
		return 0, err
	}
	return out.Version, nil
}

// replace writes the marker over the version of it that was read. Each write raises the version by
// one (docs/adr/0022-lock-by-versions.md): if it is not the next one, somebody else has written the
// marker in between.
func (s *InitMarkerState) replace(ctx context.Context, c *cloud.Clients, version int64) error {
	written, err := s.put(cloud.NeverLate(ctx), c, true)
	if err == nil && written != version+1 {
		err = fmt.Errorf("parameter %s: another run has written it at the same time", c.ParameterPath(initParameter))
	}
	return err
}

// FreeMarker is the init marker of a cluster whose control plane is lost. It is freed before a machine
// is launched that runs kubeadm init again, so that no run takes a machine of the new etcd for one of
// the old.
type FreeMarker struct {
	Lost     string // the machine that the marker names
	NeverRan bool   // AWS could not launch it, so there was no etcd: other machines can join the new one
}

var (
	_ graph.Desired[InitMarkerState] = (*FreeMarker)(nil)
	_ graph.Updater[InitMarkerState] = (*FreeMarker)(nil)
)

// Needs implements graph.Desired.
func (*FreeMarker) Needs() []graph.Edge { return nil }

// Find implements graph.Desired.
func (*FreeMarker) Find(ctx context.Context, c *cloud.Clients) (*InitMarkerState, error) {
	return ReadInitMarker(ctx, c)
}

// Diff implements graph.Desired.
func (m *FreeMarker) Diff(have *InitMarkerState) (d plan.Diff) {
	if have.Machine == m.Lost {
		d.Set("etcd", "that of "+m.Lost+", which is gone", "new and empty")
	}
	return d
}

// Update implements graph.Updater.
func (m *FreeMarker) Update(ctx context.Context, c *cloud.Clients, _ *InitMarkerState, _ plan.Diff) (*InitMarkerState, error) {
	have, version, err := storedMarker(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case have == nil || have.Machine != m.Lost:
		return nil, fmt.Errorf("parameter %s: another run has changed it", c.ParameterPath(initParameter))
	}
	after := *have
	after.Machine, after.Epoch, after.Lost = "", have.Epoch+1, append(slices.Clip(have.Lost), have.Machine)
	if !m.NeverRan {
		after.Since = c.Now().UTC()
	}
	return &after, after.replace(ctx, c, version)
}

// Delete implements graph.Deleter.
func (m *InitMarker) Delete(ctx context.Context, c *cloud.Clients, _ *InitMarkerState) error {
	_, err := c.SSM.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String(c.ParameterPath(initParameter))})
	return err
}

const initParameter = "init"

// ReadInitMarker returns the init marker of the cluster; nil if there is none.
func ReadInitMarker(ctx context.Context, c *cloud.Clients) (*InitMarkerState, error) {
	value, err := Record(ctx, c, initParameter)
	if err != nil || value == "" {
		return nil, err
	}
	return parseMarker(c, value)
}

func parseMarker(c *cloud.Clients, value string) (*InitMarkerState, error) {
	var s InitMarkerState
	if err := json.Unmarshal([]byte(value), &s); err != nil || s.free() && s.Epoch == 0 {
		return nil, fmt.Errorf("parameter %s: the value is not one of this program: %q: set \"machine\" to the ID of a machine of the control plane; "+
			"or, to delete the cluster, delete the parameter: aws ssm delete-parameter --region %s --name %[1]s", c.ParameterPath(initParameter), value, c.Region)
	}
	return &s, nil
}

// storedMarker reads the init marker and the version of its parameter, now; nil if there is none.
func storedMarker(ctx context.Context, c *cloud.Clients) (*InitMarkerState, int64, error) {
	out, err := c.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(c.ParameterPath(initParameter))})
	if cloud.NotFound(err) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	s, err := parseMarker(c, aws.ToString(out.Parameter.Value))
	return s, out.Parameter.Version, err
}

// InitializedBy returns the ID of the machine in the init marker; "" if there is none.
func InitializedBy(ctx context.Context, c *cloud.Clients) (string, error) {
	s, err := ReadInitMarker(ctx, c)
	if s == nil || err != nil {
		return "", err
	}
	return s.Machine, nil
}

// initMarkerKind declares the init marker.
func initMarkerKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: InitMarkerKind, Area: plan.AreaControlPlane, Secret: true, Single: true, Borrowed: true, OfMachines: true,
		Statement: kind.Parameters, Actions: recordActions(),
	}, kind.Functions[InitMarkerState]{
		List: listInitMarker, Delete: &InitMarker{},
		Find: func(ctx context.Context, c *cloud.Clients, _ InitMarkerState) (*InitMarkerState, error) {
			return ReadInitMarker(ctx, c)
		},
	})
}

func listInitMarker(ctx context.Context, c *cloud.Clients, _ kind.Owner) ([]InitMarkerState, error) {
	s, err := ReadInitMarker(ctx, c)
	if s == nil || err != nil {
		return nil, err
	}
	s.parameter = c.ParameterPath(initParameter)
	return []InitMarkerState{*s}, nil
}
