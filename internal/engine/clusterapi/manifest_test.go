package clusterapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/clusterapi"
)

// objectsOf parses a YAML list of objects.
func objectsOf(t *testing.T, text string) (out []unstructured.Unstructured) {
	t.Helper()
	var all []map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &all))
	for _, o := range all {
		out = append(out, unstructured.Unstructured{Object: o})
	}
	return out
}

// Without a Cluster, nobody knows whose objects these are.
func TestManifestNeedsCluster(t *testing.T) {
	_, err := clusterapi.Manifest(objectsOf(t, `[{apiVersion: v1, kind: Secret, metadata: {name: Cluster}}]`))
	require.EqualError(t, err, "there is no Cluster among the objects")
	_, err = clusterapi.Manifest(nil)
	require.EqualError(t, err, "there is no Cluster among the objects")
}

// A manifest has what a user writes: the namespace unless it is the default one, and neither the parts that controllers fill in
// nor the objects that they make.
func TestManifest(t *testing.T) {
	const vpc = `vpc: {id: vpc-1, internetGatewayId: igw-1, cidrBlock: 10.0.0.0/16`
	for name, c := range map[string]struct{ have, want string }{
		"namespaces": {
			`[{apiVersion: a/v1, kind: Cluster, metadata: {name: demo, namespace: team}, spec: {}},
				{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: default}, data: {a: b}}]`,
			`[{apiVersion: a/v1, kind: Cluster, metadata: {name: demo, namespace: team}, spec: {}},
				{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}]`,
		},
		"metadata of controllers": {
			`[{apiVersion: a/v1, kind: Cluster, spec: {paused: true, controlPlaneEndpoint: {host: x}, a: b}, status: {phase: x}, metadata: {
				name: demo, uid: "1", resourceVersion: "2", labels: {cluster.x-k8s.io/cluster-name: demo, mine: x},
				annotations: {cluster.x-k8s.io/paused: "", kubectl.kubernetes.io/last-applied-configuration: x, mine: z}}}]`,
			`[{apiVersion: a/v1, kind: Cluster, metadata: {name: demo, labels: {mine: x}, annotations: {mine: z}}, spec: {a: b}}]`,
		},
		"labels of controllers only": {
			`[{apiVersion: a/v1, kind: Cluster, metadata: {name: demo, labels: {cluster.x-k8s.io/cluster-name: demo}}}]`,
			`[{apiVersion: a/v1, kind: Cluster, metadata: {name: demo}}]`,
		},
		"objects of controllers": {
			`[{apiVersion: a/v1, kind: Cluster, metadata: {name: demo}},
				{apiVersion: a/v1, kind: MachineSet, metadata: {name: s}},
				{apiVersion: v1, kind: Secret, type: cluster.x-k8s.io/secret, metadata: {name: demo-ca}},
				{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: mine}},
				{apiVersion: a/v1, kind: AWSMachineTemplate, metadata: {name: used}},
				{apiVersion: a/v1, kind: AWSMachineTemplate, metadata: {name: left-over}},
				{apiVersion: a/v1, kind: Machine, metadata: {name: m, ownerReferences: [{kind: MachineSet, name: s, controller: true}]}},
				{apiVersion: a/v1, kind: MachineDeployment, metadata: {name: d},
					spec: {template: {spec: {infrastructureRef: {kind: AWSMachineTemplate, name: used}}}}}]`,
			`[{apiVersion: a/v1, kind: Cluster, metadata: {name: demo}},
				{apiVersion: a/v1, kind: MachineDeployment, metadata: {name: d},
					spec: {template: {spec: {infrastructureRef: {kind: AWSMachineTemplate, name: used}}}}},
				{apiVersion: a/v1, kind: AWSMachineTemplate, metadata: {name: used}},
				{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: mine}}]`,
		},
		"a network of CAPA": {
			`[{apiVersion: a/v1, kind: Cluster, metadata: {name: demo}},
				{apiVersion: a/v1, kind: AWSCluster, metadata: {name: demo}, spec: {network: {` + vpc + `,
					tags: {sigs.k8s.io/cluster-api-provider-aws/cluster/demo: owned}},
					subnets: [{id: demo-subnet-public-a, resourceID: subnet-1, routeTableId: rtb-1}]}}}]`,
			`[{apiVersion: a/v1, kind: Cluster, metadata: {name: demo}},
				{apiVersion: a/v1, kind: AWSCluster, metadata: {name: demo}, spec: {network: {vpc: {cidrBlock: 10.0.0.0/16}}}}]`,
		},
		"a network of the user": {
			`[{apiVersion: a/v1, kind: Cluster, metadata: {name: demo}},
				{apiVersion: a/v1, kind: AWSCluster, metadata: {name: demo}, spec: {network: {` + vpc + `, tags: {Name: mine}},
					subnets: [{id: subnet-1, routeTableId: rtb-1, tags: {Name: a}}]}}}]`,
			`[{apiVersion: a/v1, kind: Cluster, metadata: {name: demo}},
				{apiVersion: a/v1, kind: AWSCluster, metadata: {name: demo}, spec: {network: {vpc: {id: vpc-1, cidrBlock: 10.0.0.0/16},
					subnets: [{id: subnet-1, tags: {Name: a}}]}}}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := clusterapi.Manifest(objectsOf(t, c.have))
			require.NoError(t, err)
			require.Len(t, got, len(objectsOf(t, c.want)))
			require.ElementsMatch(t, objectsOf(t, c.want), got)
		})
	}
}
