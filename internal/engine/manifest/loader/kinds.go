package loader

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

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/hooks"
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
		return kind{schema: true, versions: map[string]decode{manifest.VersionOld: older, manifest.VersionNew: newest}}
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
		return kind{schema: true, capa: true, versions: map[string]decode{manifest.VersionNew: newest}}
	}
	builtin := func(d decode) kind { return kind{versions: map[string]decode{"v1": d}} }
	namespace := builtin(decodeAs[corev1.Namespace])
	namespace.clusterScoped = true
	return map[string]kind{
		manifest.KindCluster:     crd(upgraded(coreconversion.ConvertClusterV1Beta1ToHub), decodeAs[clusterv1.Cluster]),
		manifest.KindDeployment:  crd(upgraded(coreconversion.ConvertMachineDeploymentV1Beta1ToHub), decodeAs[clusterv1.MachineDeployment]),
		manifest.KindMachine:     crd(upgraded(coreconversion.ConvertMachineV1Beta1ToHub), decodeAs[clusterv1.Machine]),
		manifest.KindHealthCheck: crd(upgraded(coreconversion.ConvertMachineHealthCheckV1Beta1ToHub), decodeAs[clusterv1.MachineHealthCheck]),
		manifest.KindDrainRule:   crd(decodeAs[clusterv1beta1.MachineDrainRule], decodeAs[clusterv1.MachineDrainRule]),
		manifest.KindResourceSet: crd(upgraded(coreconversion.ConvertClusterResourceSetV1Beta1ToHub), decodeAs[addonsv1.ClusterResourceSet]),
		manifest.KindControlPlane: crd(upgraded(controlplaneconversion.ConvertKubeadmControlPlaneV1Beta1ToHub),
			decodeAs[controlplanev1.KubeadmControlPlane],
		),
		manifest.KindConfig: crd(upgraded(bootstrapconversion.ConvertKubeadmConfigV1Beta1ToHub), decodeAs[bootstrapv1.KubeadmConfig]),
		manifest.KindConfigTemplate: crd(upgraded(bootstrapconversion.ConvertKubeadmConfigTemplateV1Beta1ToHub),
			decodeAs[bootstrapv1.KubeadmConfigTemplate],
		),
		manifest.KindAWSCluster: capa(upgraded(toHub[*infrav1beta1.AWSCluster, *infrav1.AWSCluster]), decodeAs[infrav1.AWSCluster]),
		manifest.KindAWSMachine: capa(upgraded(toHub[*infrav1beta1.AWSMachine, *infrav1.AWSMachine]), decodeAs[infrav1.AWSMachine]),
		manifest.KindAWSMachineTemplate: capa(upgraded(toHub[*infrav1beta1.AWSMachineTemplate, *infrav1.AWSMachineTemplate]),
			decodeAs[infrav1.AWSMachineTemplate],
		),
		manifest.KindControllerIdentity: identity(
			upgraded(toHub[*infrav1beta1.AWSClusterControllerIdentity, *infrav1.AWSClusterControllerIdentity]),
			decodeAs[infrav1.AWSClusterControllerIdentity],
		),
		manifest.KindRoleIdentity: identity(
			upgraded(toHub[*infrav1beta1.AWSClusterRoleIdentity, *infrav1.AWSClusterRoleIdentity]),
			decodeAs[infrav1.AWSClusterRoleIdentity],
		),
		manifest.KindStaticIdentity: identity(
			upgraded(toHub[*infrav1beta1.AWSClusterStaticIdentity, *infrav1.AWSClusterStaticIdentity]),
			decodeAs[infrav1.AWSClusterStaticIdentity],
		),
		manifest.KindPool: crd(upgraded(coreconversion.ConvertMachinePoolV1Beta1ToHub), decodeAs[clusterv1.MachinePool]),
		manifest.KindManagedPlane: capa(upgraded(toHub[*ekscontrolplanev1beta1.AWSManagedControlPlane, *ekscontrolplanev1.AWSManagedControlPlane]),
			decodeAs[ekscontrolplanev1.AWSManagedControlPlane],
		),
		manifest.KindManagedCluster: only(decodeAs[infrav1.AWSManagedCluster]),
		manifest.KindManagedPool: capa(upgraded(toHub[*expinfrav1beta1.AWSManagedMachinePool, *expinfrav1.AWSManagedMachinePool]),
			decodeAs[expinfrav1.AWSManagedMachinePool],
		),
		manifest.KindScalingPool: capa(upgraded(toHub[*expinfrav1beta1.AWSMachinePool, *expinfrav1.AWSMachinePool]),
			decodeAs[expinfrav1.AWSMachinePool],
		),
		manifest.KindFargateProfile: capa(upgraded(toHub[*expinfrav1beta1.AWSFargateProfile, *expinfrav1.AWSFargateProfile]),
			decodeAs[expinfrav1.AWSFargateProfile],
		),
		manifest.KindEKSConfig: capa(
			upgraded(toHub[*eksbootstrapv1beta1.EKSConfig, *eksbootstrapv1.EKSConfig]), //nolint:staticcheck // deprecated, and what nodes of Amazon Linux 2 boot with
			decodeAs[eksbootstrapv1.EKSConfig],                                         //nolint:staticcheck // as above
		),
		manifest.KindEKSConfigTemplate: capa(upgraded(toHub[*eksbootstrapv1beta1.EKSConfigTemplate, *eksbootstrapv1.EKSConfigTemplate]),
			decodeAs[eksbootstrapv1.EKSConfigTemplate],
		),
		manifest.KindNodeadm:         only(decodeAs[eksbootstrapv1.NodeadmConfig]),
		manifest.KindNodeadmTemplate: only(decodeAs[eksbootstrapv1.NodeadmConfigTemplate]),
		manifest.KindHelmChart:       {versions: map[string]decode{manifest.VersionHelmChart: decodeAs[manifest.HelmChartProxy]}},
		manifest.KindConfigMap:       builtin(decodeAs[corev1.ConfigMap]),
		manifest.KindSecret:          builtin(decodeAs[corev1.Secret]),
		manifest.KindNamespace:       namespace,
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
		err := hooks.RecoverPanics(func() error { return convert(ctx, &older, &newest) })
		return &newest, err
	}
}

// toHub converts with the conversion methods of CAPA's types.
func toHub[Old conversion.Convertible, New conversion.Hub](_ context.Context, older Old, newest New) error {
	return older.ConvertTo(newest)
}

// fromHub converts back.
func fromHub[New conversion.Hub, Old conversion.Convertible](_ context.Context, newest New, older Old) error {
	return older.ConvertFrom(newest)
}
