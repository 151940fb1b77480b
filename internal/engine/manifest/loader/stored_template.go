package loader

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	infrav1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta1"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	ekswebhooks "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/webhooks"
	"sigs.k8s.io/cluster-api-provider-aws/v2/webhooks"
	bootstrapconversion "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/conversion"
	controlplaneconversion "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	kjson "sigs.k8s.io/json"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/hooks"
)

// stored returns a template as an API server returns it, in the version in which it is written.
type stored func(ctx context.Context, value map[string]any) (any, error)

// storedTemplates returns, by kind and version, what an API server does with a template before the patches
// of a ClusterClass see it. Webhooks set defaults and write all fields that are never omitted. A template
// of v1beta1 is stored in v1beta2, and converted back: it has the empty structures of its types.
// Kinds that are missing are returned as they are written, with the defaults of their schema.
func storedTemplates() map[string]stored {
	awsCluster := (&webhooks.AWSClusterTemplate{}).Default
	return map[string]stored{
		manifest.KindAWSClusterTemplate + "/" + manifest.VersionNew: defaulted[infrav1.AWSClusterTemplate](awsCluster),
		manifest.KindAWSClusterTemplate + "/" + manifest.VersionOld: spoke[infrav1beta1.AWSClusterTemplate, infrav1.AWSClusterTemplate](awsCluster),
		"AWSManagedControlPlaneTemplate/" + manifest.VersionNew: defaulted[ekscontrolplanev1.AWSManagedControlPlaneTemplate](
			(&ekswebhooks.AWSManagedControlPlaneTemplate{}).Default,
		),
		manifest.KindAWSMachineTemplate + "/" + manifest.VersionOld: spoke[infrav1beta1.AWSMachineTemplate, infrav1.AWSMachineTemplate](nil),
		manifest.KindEKSConfigTemplate + "/" + manifest.VersionOld:  spoke[eksbootstrapv1beta1.EKSConfigTemplate, eksbootstrapv1.EKSConfigTemplate](nil),
		manifest.KindConfigTemplate + "/" + manifest.VersionOld: converted(
			bootstrapconversion.ConvertKubeadmConfigTemplateV1Beta1ToHub,
			bootstrapconversion.ConvertKubeadmConfigTemplateHubToV1Beta1,
		),
		manifest.KindControlPlaneTemplate + "/" + manifest.VersionOld: converted(
			controlplaneconversion.ConvertKubeadmControlPlaneTemplateV1Beta1ToHub,
			controlplaneconversion.ConvertKubeadmControlPlaneTemplateHubToV1Beta1,
		),
	}
}

// defaulting is the method of a webhook.
type defaulting func(ctx context.Context, o runtime.Object) error

// defaulted runs a webhook on a template of the newest version.
func defaulted[T any, P interface {
	*T
	runtime.Object
}](defaults defaulting) stored {
	return func(ctx context.Context, value map[string]any) (any, error) {
		template := P(new(T))
		if err := decodeInto(value, template); err != nil {
			return nil, err
		}
		return template, defaults(ctx, template)
	}
}

// spoke converts a template of CAPA to the newest version, runs its webhook, and converts it back.
func spoke[Old, New any, OldP interface {
	*Old
	conversion.Convertible
}, NewP interface {
	*New
	conversion.Hub
}](defaults defaulting) stored {
	return func(ctx context.Context, value map[string]any) (any, error) {
		older, newest, again := OldP(new(Old)), NewP(new(New)), OldP(new(Old))
		if err := decodeInto(value, older); err != nil {
			return nil, err
		}
		if err := older.ConvertTo(newest); err != nil {
			return nil, err
		}
		if defaults != nil {
			if err := defaults(ctx, newest); err != nil {
				return nil, err
			}
		}
		return again, again.ConvertFrom(newest)
	}
}

// converted converts a template of Cluster API to the newest version and back.
func converted[Old, New any](to func(context.Context, *Old, *New) error, from func(context.Context, *New, *Old) error) stored {
	return func(ctx context.Context, value map[string]any) (any, error) {
		older, newest, again := new(Old), new(New), new(Old)
		if err := decodeInto(value, older); err != nil {
			return nil, err
		}
		if err := to(ctx, older, newest); err != nil {
			return nil, err
		}
		return again, from(ctx, newest, again)
	}
}

// storeTemplate replaces a template by what an API server returns.
func (t *topology) storeTemplate(ctx context.Context, o *manifest.Entry) bool {
	store := storedTemplates()[o.Kind+"/"+o.Version]
	if store == nil {
		return true
	}
	value, err := t.asStored(ctx, o, store)
	if err != nil {
		t.fail(o.Problem("", err.Error(), ""))
		return false
	}
	o.Value = value
	return true
}

func (t *topology) asStored(ctx context.Context, o *manifest.Entry, store stored) (value map[string]any, err error) {
	s, err := crd.For(o.Kind, o.Version)
	if err != nil {
		return nil, err
	}
	var typed any
	if err := hooks.RecoverPanics(func() (err error) {
		typed, err = store(ctx, o.Value)
		return err
	}); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil {
		return nil, err
	}
	delete(value, "status")
	dropCreationTimestamps(value)
	for _, field := range []string{"apiVersion", "kind", "metadata"} { // a conversion sets an annotation
		value[field] = o.Value[field]
	}
	s.Fill(value)
	return value, nil
}
