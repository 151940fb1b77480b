package manifest

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	infrav1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta1"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	ekscontrolplanev1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta1"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta1"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // deprecated, and what most manifests are written in
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	bootstrapconversion "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/conversion"
	controlplaneconversion "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	coreconversion "sigs.k8s.io/cluster-api/core/webhooks/conversion"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

// kind says how to read the objects of one kind.
type kind struct {
	group         string
	clusterScoped bool
	schema        bool              // has a CRD schema; core kinds are decoded strictly instead
	capa          bool              // a CAPA kind: CAPA serves the newest version only
	versions      map[string]decode // by API version
}

// decode converts an object to its newest typed version.
type decode func(ctx context.Context, object map[string]any) (any, error)

// kinds returns the supported kinds.
func kinds() map[string]kind {
	crd := func(older, newest decode) kind {
		return kind{schema: true, versions: map[string]decode{versionOld: older, versionNew: newest}}
	}
	capa := func(older, newest decode) kind {
		k := crd(older, newest)
		k.capa = true
		return k
	}
	identity := func(older, newest decode) kind {
		k := capa(older, newest)
		k.clusterScoped = true
		return k
	}
	// For these kinds, CAPA has no older API version.
	only := func(newest decode) kind {
		return kind{schema: true, capa: true, versions: map[string]decode{versionNew: newest}}
	}
	builtin := func(d decode) kind { return kind{versions: map[string]decode{"v1": d}} }
	namespace := builtin(decodeAs[corev1.Namespace])
	namespace.clusterScoped = true
	return map[string]kind{
		kindCluster:     crd(upgraded(coreconversion.ConvertClusterV1Beta1ToHub), decodeAs[clusterv1.Cluster]),
		kindDeployment:  crd(upgraded(coreconversion.ConvertMachineDeploymentV1Beta1ToHub), decodeAs[clusterv1.MachineDeployment]),
		kindMachine:     crd(upgraded(coreconversion.ConvertMachineV1Beta1ToHub), decodeAs[clusterv1.Machine]),
		kindHealthCheck: crd(upgraded(coreconversion.ConvertMachineHealthCheckV1Beta1ToHub), decodeAs[clusterv1.MachineHealthCheck]),
		kindDrainRule:   crd(decodeAs[clusterv1beta1.MachineDrainRule], decodeAs[clusterv1.MachineDrainRule]),
		kindResourceSet: crd(upgraded(coreconversion.ConvertClusterResourceSetV1Beta1ToHub), decodeAs[addonsv1.ClusterResourceSet]),
		kindControlPlane: crd(upgraded(controlplaneconversion.ConvertKubeadmControlPlaneV1Beta1ToHub),
			decodeAs[controlplanev1.KubeadmControlPlane],
		),
		kindConfig: crd(upgraded(bootstrapconversion.ConvertKubeadmConfigV1Beta1ToHub), decodeAs[bootstrapv1.KubeadmConfig]),
		kindConfigTemplate: crd(upgraded(bootstrapconversion.ConvertKubeadmConfigTemplateV1Beta1ToHub),
			decodeAs[bootstrapv1.KubeadmConfigTemplate],
		),
		kindAWSCluster: capa(upgraded(toHub[*infrav1beta1.AWSCluster, *infrav1.AWSCluster]), decodeAs[infrav1.AWSCluster]),
		kindAWSMachine: capa(upgraded(toHub[*infrav1beta1.AWSMachine, *infrav1.AWSMachine]), decodeAs[infrav1.AWSMachine]),
		kindAWSMachineTemplate: capa(upgraded(toHub[*infrav1beta1.AWSMachineTemplate, *infrav1.AWSMachineTemplate]),
			decodeAs[infrav1.AWSMachineTemplate],
		),
		kindControllerIdentity: identity(
			upgraded(toHub[*infrav1beta1.AWSClusterControllerIdentity, *infrav1.AWSClusterControllerIdentity]),
			decodeAs[infrav1.AWSClusterControllerIdentity],
		),
		kindRoleIdentity: identity(
			upgraded(toHub[*infrav1beta1.AWSClusterRoleIdentity, *infrav1.AWSClusterRoleIdentity]),
			decodeAs[infrav1.AWSClusterRoleIdentity],
		),
		kindStaticIdentity: identity(
			upgraded(toHub[*infrav1beta1.AWSClusterStaticIdentity, *infrav1.AWSClusterStaticIdentity]),
			decodeAs[infrav1.AWSClusterStaticIdentity],
		),
		kindPool: crd(upgraded(coreconversion.ConvertMachinePoolV1Beta1ToHub), decodeAs[clusterv1.MachinePool]),
		kindManagedPlane: capa(upgraded(toHub[*ekscontrolplanev1beta1.AWSManagedControlPlane, *ekscontrolplanev1.AWSManagedControlPlane]),
			decodeAs[ekscontrolplanev1.AWSManagedControlPlane],
		),
		kindManagedCluster: only(decodeAs[infrav1.AWSManagedCluster]),
		kindManagedPool: capa(upgraded(toHub[*expinfrav1beta1.AWSManagedMachinePool, *expinfrav1.AWSManagedMachinePool]),
			decodeAs[expinfrav1.AWSManagedMachinePool],
		),
		kindScalingPool: capa(upgraded(toHub[*expinfrav1beta1.AWSMachinePool, *expinfrav1.AWSMachinePool]),
			decodeAs[expinfrav1.AWSMachinePool],
		),
		kindFargateProfile: capa(upgraded(toHub[*expinfrav1beta1.AWSFargateProfile, *expinfrav1.AWSFargateProfile]),
			decodeAs[expinfrav1.AWSFargateProfile],
		),
		kindEKSConfig: capa(upgraded(toHub[*eksbootstrapv1beta1.EKSConfig, *eksbootstrapv1.EKSConfig]), //nolint:staticcheck // deprecated, and what nodes of Amazon Linux 2 boot with
			decodeAs[eksbootstrapv1.EKSConfig], //nolint:staticcheck // as above
		),
		kindEKSConfigTemplate: capa(upgraded(toHub[*eksbootstrapv1beta1.EKSConfigTemplate, *eksbootstrapv1.EKSConfigTemplate]),
			decodeAs[eksbootstrapv1.EKSConfigTemplate],
		),
		kindNodeadm:         only(decodeAs[eksbootstrapv1.NodeadmConfig]),
		kindNodeadmTemplate: only(decodeAs[eksbootstrapv1.NodeadmConfigTemplate]),
		kindHelmChart:       {versions: map[string]decode{versionHelmChart: decodeAs[HelmChartProxy]}},
		kindConfigMap:       builtin(decodeAs[corev1.ConfigMap]),
		kindSecret:          builtin(decodeAs[corev1.Secret]),
		kindNamespace:       namespace,
	}
}

// decodeAs decodes an object of the newest API version.
func decodeAs[T any](_ context.Context, object map[string]any) (any, error) {
	out := new(T)
	return out, decodeInto(object, out)
}

// decodeInto decodes an object into a value of its type.
func decodeInto(object map[string]any, value any) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, value)
}

// upgraded decodes an object of an older API version and converts it.
func upgraded[Old, New any](convert func(context.Context, *Old, *New) error) decode {
	return func(ctx context.Context, object map[string]any) (any, error) {
		var older Old
		var newest New
		if err := decodeInto(object, &older); err != nil {
			return nil, err
		}
		err := recoverPanics(func() error { return convert(ctx, &older, &newest) })
		return &newest, err
	}
}

// toHub converts with the conversion methods of CAPA's types.
func toHub[Old conversion.Convertible, New conversion.Hub](_ context.Context, older Old, newest New) error {
	return older.ConvertTo(newest)
}
