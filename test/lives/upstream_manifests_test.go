//go:build e2e

package lives_test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/assume"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	capa "github.com/clusterawsadm/clusterawsadm/test/upstream"
)

// Folders of the Go module of Cluster API Provider AWS.
const (
	upstreamTemplates = "templates/"
	upstreamEKS       = "test/e2e/data/eks/"
	upstreamE2E       = "test/e2e/data/infrastructure-aws/"
	upstreamClasses   = upstreamE2E + "withclusterclass/"
	upstreamPlain     = upstreamE2E + "withoutclusterclass/"
)

// All manifests in the module of Cluster API Provider AWS, which are its templates and the
// data of its end-to-end tests, are valid, are created, are unchanged afterwards, and are
// deleted. Exceptions are listed here, with reasons.
func TestUpstreamsManifests(t *testing.T) {
	dir := capa.Dir(t)
	manifests := upstreamsManifests(t, dir)
	image := "" // for Kubernetes 1.34.2
	awssim.New(awssim.Options{Region: "us-west-2"}).Edit(func(s *awssim.State) {
		for id, i := range s.EC2.Images {
			if strings.Contains(i.Name, "capa-ami-ubuntu-24.04-v1.34.2") {
				image = id
			}
		}
	})
	for name := range impossible() {
		require.Contains(t, manifests, name)
	}
	for name := range companions() {
		require.Contains(t, manifests, name)
	}
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		t.Run(name, func(t *testing.T) {
			sources := []input.Source{{Name: filepath.Base(name), Data: corrected(name, manifests[name](t))}}
			if other, ok := companions()[name]; ok {
				data, err := os.ReadFile(filepath.Join(dir, other))
				require.NoError(t, err)
				sources = append(sources, input.Source{Name: filepath.Base(other), Data: data})
			}
			m, err := loadUpstreams(sources, image)
			if reason, ok := impossible()[name]; ok {
				require.ErrorContains(t, err, reason)
				return
			}
			require.NoError(t, err)
			prepared, err := loadUpstreams(sources, image)
			require.NoError(t, err)
			m = enginetest.Quick(m)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				assumed(t, a, prepared)
				before := a.Inventory()
				require.NotZero(t, enginetest.MustPlan(t, m, a).Count(plan.Create))
				enginetest.MustApply(t, m, a)
				enginetest.RequireNoChange(t, m, a)
				enginetest.MustDelete(t, m, a)
				time.Sleep(5 * time.Minute) // until AWS deletes the network interfaces of load balancers
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// assumed puts into the account what a manifest takes for granted, as --simulate-assume does. Only one of the existing
// subnets is public.
func assumed(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
	t.Helper()
	for i, s := range m.Infra.Spec.NetworkSpec.Subnets {
		m.Infra.Spec.NetworkSpec.Subnets[i].IsPublic = s.ID == publicSubnet
	}
	_, err := assume.Put(t.Context(), a, m.Assumed())
	require.NoError(t, err)
}

// upstreamsManifests returns how to read each manifest, by its path in the module: a file, or
// a folder that kustomize builds.
func upstreamsManifests(t *testing.T, dir string) map[string]func(*testing.T) []byte {
	t.Helper()
	found := map[string]func(*testing.T) []byte{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case entry.Name() == "kustomization.yaml" && strings.HasPrefix(name, upstreamE2E):
			found[filepath.Dir(name)] = func(t *testing.T) []byte {
				t.Helper()
				build := exec.CommandContext(
					t.Context(),
					"go",
					"tool",
					"-modfile=../../tools/go.mod",
					"kustomize",
					"build",
					"--load-restrictor",
					"LoadRestrictionsNone",
					filepath.Dir(path),
				)
				out, err := build.Output()
				require.NoError(t, err)
				return out
			}
		case strings.HasPrefix(entry.Name(), "cluster-template") && !strings.Contains(name, "kustomize_sources"):
			found[name] = func(t *testing.T) []byte {
				t.Helper()
				raw, err := os.ReadFile(path)
				require.NoError(t, err)
				return raw
			}
		}
		return nil
	}))
	return found
}

// impossible are the manifests that are not accepted, with the problem that is reported.
func impossible() map[string]string {
	const (
		rosa = "ROSA clusters are not supported"
		host = "hostID can only be set when tenancy is 'host'" // a webhook of upstream
	)
	return map[string]string{
		upstreamTemplates + "cluster-template-rosa.yaml":                                   rosa,
		upstreamTemplates + "cluster-template-rosa-machinepool.yaml":                       rosa,
		upstreamTemplates + "cluster-template-rosa-role-config.yaml":                       rosa,
		upstreamPlain + "kustomize_sources/dedicated-host":                                 host,
		upstreamPlain + "e2e_test_templates/cluster-template-external-securitygroups.yaml": "there is no Cluster in the input", // the file is empty
	}
}

// corrected returns a manifest without mistakes of upstream.
func corrected(name string, raw []byte) []byte {
	text := strings.ReplaceAll(string(raw), "cloud-provider: aws", "cloud-provider: external") // Kubernetes 1.27 has removed that provider
	text = regexp.MustCompile(`(?m)^ +feature-gates: "?CSIMigrationAWS=.*\n`).ReplaceAllString(text, "")
	// kubeadm does not label Nodes so since Kubernetes 1.24.
	text = regexp.MustCompile(`(nodeSelector:\n +node-role.kubernetes.io/)master`).ReplaceAllString(text, "${1}control-plane")
	switch {
	case strings.HasSuffix(name, "internal-elb.yaml"), strings.HasSuffix(name, "internal-elb"),
		strings.HasSuffix(name, "peered-remote.yaml"), strings.HasSuffix(name, "peered-remote"):
		// AWSMachineTemplates have no such field: kubectl refuses it.
		text = regexp.MustCompile(`(?m)^      failureDomain: .*\n`).ReplaceAllString(text, "")
	case name == upstreamTemplates+"cluster-template-eks-ipv6.yaml":
		// The template has versions of Kubernetes 1.22, which EKS refuses for all others.
		text = strings.NewReplacer("v1.11.0-eksbuild.1", "v1.20.4-eksbuild.1", "v1.8.7-eksbuild.1", "v1.12.4-eksbuild.1", "v1.22.6-eksbuild.1", "v1.34.0-eksbuild.2").
			Replace(text)
	}
	return []byte(text)
}

// companions are the manifests that need another file of the module.
func companions() map[string]string {
	const (
		defaultClass = upstreamClasses + "clusterclassbase/clusterclass-ci-default.yaml"
		tenantClass  = upstreamClasses + "clusterclassbase/clusterclass-multi-tenancy.yaml"
		controlPlane = upstreamEKS + "cluster-template-eks-control-plane-only.yaml"
	)
	return map[string]string{
		upstreamClasses + "e2e_test_templates/cluster-template-topology.yaml":                         defaultClass,
		upstreamClasses + "e2e_test_templates/cluster-template-self-hosted-clusterclass.yaml":         defaultClass,
		upstreamClasses + "e2e_test_templates/cluster-template-nested-multitenancy-clusterclass.yaml": tenantClass,
		upstreamClasses + "kustomize_sources/topology":                                                upstreamClasses + "kustomize_sources/topology/clusterclass-ci-default.yaml",
		upstreamClasses + "kustomize_sources/self-hosted-clusterclass":                                upstreamClasses + "kustomize_sources/topology/clusterclass-ci-default.yaml",
		upstreamClasses + "kustomize_sources/external-vpc-clusterclass":                               upstreamClasses + "kustomize_sources/topology/clusterclass-ci-default.yaml",
		upstreamClasses + "kustomize_sources/nested-multitenancy-clusterclass":                        upstreamClasses + "kustomize_sources/nested-multitenancy-clusterclass/clusterclass-multi-tenancy.yaml",
		upstreamClasses + "kustomize_sources/eks-clusterclass":                                        upstreamClasses + "kustomize_sources/eks-clusterclass/clusterclass-eks-e2e.yaml",
		upstreamTemplates + "cluster-template-eks-clusterclass.yaml":                                  upstreamClasses + "kustomize_sources/eks-clusterclass/cluster-template.yaml",
		upstreamEKS + "cluster-template-eks-machine-deployment-only.yaml":                             controlPlane,
		upstreamEKS + "cluster-template-eks-machinepool-only.yaml":                                    controlPlane,
		upstreamEKS + "cluster-template-eks-managed-machinepool-only.yaml":                            controlPlane,
		upstreamEKS + "cluster-template-eks-managed-machinepool-with-launch-template-only.yaml":       controlPlane,
	}
}

// IDs of existing resources. Only the public subnet has a route to the internet.
const (
	existingVPC   = "vpc-00000000000000001"
	publicSubnet  = "subnet-0000000000000000a"
	privateSubnet = "subnet-0000000000000001a"
	existingGroup = "sg-00000000000000001"
)

// loadUpstreams loads a manifest with values for all variables of upstream's manifests, and
// with the identity that upstream's tests create. other are pairs of a name and a value.
func loadUpstreams(sources []input.Source, image string, other ...string) (*manifest.Cluster, error) {
	env := map[string]string{
		"CLUSTER_NAME": "upstream", "CLUSTER_CLASS_NAME": "eks-e2e", "KUBERNETES_VERSION": "v1.34.2", "CONTROL_PLANE_MACHINE_COUNT": "3", "WORKER_MACHINE_COUNT": "2",
		"AWS_REGION": "us-west-2", "AWS_AVAILABILITY_ZONE": "us-west-2a", "AWS_AVAILABILITY_ZONE_1": "us-west-2a", "AWS_AVAILABILITY_ZONE_2": "us-west-2b",
		"AWS_SSH_KEY_NAME": "default", "AWS_CONTROL_PLANE_MACHINE_TYPE": "t3.large", "AWS_NODE_MACHINE_TYPE": "t3.large", "AWS_ACCOUNT_ID": "123456789012",
		"AWS_S3_BUCKET_NAME": "cluster-api-provider-aws-upstream", "UPGRADE_POLICY": "standard", "HOST_ID": "h-00000000000000001", "HOST_AFFINITY": "host",
		"VPC_ADDON_VERSION": "v1.20.4-eksbuild.1", "KUBE_PROXY_ADDON_VERSION": "v1.34.0-eksbuild.2", "KUBERNETES_AWS_CCM_VERSION": "v1.34.0", "CNI_RESOURCES": "{}",
		"BYO_VPC_ID": existingVPC, "BYO_PUBLIC_SUBNET_ID": publicSubnet, "BYO_PRIVATE_SUBNET_ID": privateSubnet,
		"WL_VPC_ID": existingVPC, "WL_PRIVATE_SUBNET_ID": privateSubnet,
		"MGMT_VPC_ID": existingVPC, "MGMT_PUBLIC_SUBNET_ID": publicSubnet, "MGMT_PRIVATE_SUBNET_ID": privateSubnet,
		"MGMT_CLUSTER_NAME": "management", "SG_ID": existingGroup, "E2E_IMAGE_TAG": "e2e", "CAPI_IMAGES_REGISTRY": "registry.k8s.io",
		"IMAGE_ID":            image,
		"COREOS_EC2_HOSTNAME": "${COREOS_EC2_HOSTNAME}",
	}
	for i := 0; i+1 < len(other); i += 2 {
		env[other[i]] = other[i+1]
	}
	text := map[string]bool{
		"CAPI_IMAGES_REGISTRY":        true,
		"E2E_IMAGE_TAG":               true,
		"KUBERNETES_AWS_CCM_VERSION":  true,
		"COREDNS_ADDON_CONFIGURATION": true,
	} // only in commands and ConfigMaps: named with --set
	for _, name := range []string{"JUMP", "NESTED", "SIMPLE"} {
		env["MULTI_TENANCY_"+name+"_ROLE_ARN"] = "arn:aws:iam::123456789012:role/" + strings.ToLower(name)
		env["MULTI_TENANCY_"+name+"_IDENTITY_NAME"] = strings.ToLower(name)
	}
	const account = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSClusterStaticIdentity
metadata: {name: e2e-account}
spec: {secretRef: e2e-account-creds, allowedNamespaces: {}}
---
apiVersion: v1
kind: Secret
metadata: {name: e2e-account-creds, namespace: capa-system}
stringData: {AccessKeyID: AKIAEXAMPLE, SecretAccessKey: example}
`
	return loader.Load(sources, input.LoadOptions{
		Set:        func(name string) (string, bool) { v, ok := env[name]; return v, ok && text[name] },
		Lookup:     func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Identities: []input.Source{{Name: "identities.yaml", Data: []byte(account)}},
	})
}
