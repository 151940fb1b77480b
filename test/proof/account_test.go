package proof_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// examples lists the manifests in configs that need nothing but an account: those that use an
// existing network need one, and are in lifecycle tests of test/lives.
func examples(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../../configs/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		if !strings.Contains(string(raw), "id: vpc-") {
			names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
		}
	}
	slices.Sort(names)
	require.NotEmpty(t, names)
	return names
}

// objectsOf returns the objects of an example, with the defaults of its variables.
func objectsOf(t *testing.T, example string) (objects []map[string]any) {
	t.Helper()
	raw, err := os.ReadFile("../../configs/" + example + ".yaml")
	require.NoError(t, err)
	text := variable.ReplaceAllString(string(raw), "$1")
	for doc := range strings.SplitSeq(text, "\n---\n") {
		var o map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(doc), &o))
		if o != nil {
			quicken(o)
			objects = append(objects, o)
		}
	}
	return objects
}

// quicken chooses a quick algorithm for the keys of a cluster.
func quicken(o map[string]any) {
	for _, path := range [][]string{{"spec", "kubeadmConfigSpec", "clusterConfiguration"}, {"spec", "clusterConfiguration"}, {"spec", "template", "spec", "kubeadmConfigSpec", "clusterConfiguration"}} {
		at, ok := o, true
		for _, name := range path {
			if at, ok = at[name].(map[string]any); !ok {
				break
			}
		}
		if ok && strings.HasSuffix(o["apiVersion"].(string), "/v1beta2") {
			at["encryptionAlgorithm"] = "ECDSA-P256"
		}
	}
}

// sourcesOf writes objects into files.
func sourcesOf(t *testing.T, objects []map[string]any) (sources []input.Source) {
	t.Helper()
	for _, o := range objects {
		data, err := json.Marshal(o)
		require.NoError(t, err)
		sources = append(sources, input.Source{Name: "x.yaml", Data: data})
	}
	return sources
}

// options are those with which an example is read.
func options(example string) input.LoadOptions {
	return input.LoadOptions{Substitute: input.SubstituteNone, EKSEnableIAM: strings.HasSuffix(example, "-iam")}
}

// load reads objects as the command does.
func load(t *testing.T, example string, objects []map[string]any) (*reconcile.Manifest, error) {
	t.Helper()
	return reconcile.Load(sourcesOf(t, objects), options(example))
}

// modelOf reads an example as it is written.
func modelOf(t *testing.T, example string) *manifest.Cluster {
	t.Helper()
	m, err := loader.Load(sourcesOf(t, objectsOf(t, example)), options(example))
	require.NoError(t, err)
	return m
}

// account returns a simulated account with what an example, as it is written, expects to exist.
func account(m *manifest.Cluster) *awssim.AWS {
	a := awssim.New(awssim.Options{Region: m.Region})
	role := func(s *awssim.State, name, service string) {
		s.IAM.Roles[name] = &awssim.Role{
			Name:    name,
			Service: service,
			Holder:  iam.Holder{Attached: []string{"arn:aws:iam::aws:policy/AdministratorAccess"}},
		}
	}
	a.Edit(func(s *awssim.State) {
		if m.EKS != nil && m.EKS.ControlPlane.Spec.EncryptionConfig != nil {
			s.KMS.Keys[*m.EKS.ControlPlane.Spec.EncryptionConfig.Provider] = &awssim.Key{}
		}
		for _, id := range m.Identity {
			if id.Role != nil {
				role(s, last(id.Role.RoleArn), "eks.amazonaws.com")
			}
		}
		for name, service := range roles(m) {
			role(s, name, service)
		}
		for _, d := range m.Deployments {
			spec := &d.Template.Spec.Template.Spec
			if spec.PlacementGroupName != "" {
				s.EC2.PlacementGroups[spec.PlacementGroupName] = "partition"
			}
			if id := spec.CapacityReservationID; id != nil {
				s.EC2.Reservations[*id] = &awssim.Reservation{Block: spec.MarketType == infrav1.MarketTypeCapacityBlock}
			}
		}
	})
	return a
}

// roles lists the existing roles that the manifest of an EKS cluster names, with the services that assume them.
func roles(m *manifest.Cluster) map[string]string {
	names := map[string]string{}
	if m.EKS == nil {
		return names
	}
	spec := &m.EKS.ControlPlane.Spec
	if spec.Addons != nil {
		for _, a := range *spec.Addons {
			if a.ServiceAccountRoleArn != nil {
				names[last(*a.ServiceAccountRoleArn)] = "eks.amazonaws.com"
			}
		}
	}
	for _, e := range spec.AccessEntries {
		names[last(e.PrincipalARN)] = "eks.amazonaws.com"
	}
	if m.EKS.EnableIAM {
		return names
	}
	names[*spec.RoleName] = "eks.amazonaws.com"
	for _, f := range m.EKS.Fargate {
		names[f.Spec.RoleName] = "eks-fargate-pods.amazonaws.com"
	}
	for _, p := range m.Pools {
		if p.Managed != nil {
			names[p.Managed.Spec.RoleName] = "ec2.amazonaws.com"
		}
	}
	return names
}

// last returns the name at the end of an ARN.
func last(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }

// open returns the cluster for a new process, which waits for as much as the command does. Warnings go to warn.
func open(m *reconcile.Manifest, a *awssim.AWS, warn func(string)) *reconcile.Cluster {
	p := a.Process()
	return reconcile.Open(m, cluster.Target{
		Config: p.Config(), Owner: "test", Wait: m.MostWait(), Timeout: 20 * time.Minute, Warn: warn,
		Transport: func(x cluster.Access) http.RoundTripper { return p.Kubernetes(kube.Access(x)) },
	})
}
