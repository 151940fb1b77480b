package loader

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	infrav1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta1"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	ekswebhooks "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/webhooks"
	"sigs.k8s.io/cluster-api-provider-aws/v2/webhooks"
	bootstrapconversion "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/conversion"
	controlplaneconversion "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	kjson "sigs.k8s.io/json"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/hooks"
)

// stored returns a template as an API server returns it: read in the version in which it is written, returned in the one
// that is asked for.
type stored func(ctx context.Context, value map[string]any, written, wanted string) (any, error)

// storedTemplates returns, by kind, what an API server does with a template before the patches of a ClusterClass see it.
// Webhooks set defaults and write all fields that are never omitted. A template is stored in v1beta2; in v1beta1, it has
// the empty structures of its types.
func storedTemplates() map[string]stored {
	return map[string]stored{
		manifest.KindAWSClusterTemplate: converted(
			toHub[*infrav1beta1.AWSClusterTemplate, *infrav1.AWSClusterTemplate],
			fromHub,
			(&webhooks.AWSClusterTemplate{}).Default,
		),
		manifest.KindManagedPlaneTemplate: defaulted[ekscontrolplanev1.AWSManagedControlPlaneTemplate]((&ekswebhooks.AWSManagedControlPlaneTemplate{}).Default),
		manifest.KindAWSMachineTemplate:   converted(toHub[*infrav1beta1.AWSMachineTemplate, *infrav1.AWSMachineTemplate], fromHub, nil),
		manifest.KindEKSConfigTemplate:    converted(toHub[*eksbootstrapv1beta1.EKSConfigTemplate, *eksbootstrapv1.EKSConfigTemplate], fromHub, nil),
		manifest.KindConfigTemplate: converted(
			bootstrapconversion.ConvertKubeadmConfigTemplateV1Beta1ToHub,
			bootstrapconversion.ConvertKubeadmConfigTemplateHubToV1Beta1, nil,
		),
		manifest.KindControlPlaneTemplate: converted(
			controlplaneconversion.ConvertKubeadmControlPlaneTemplateV1Beta1ToHub,
			controlplaneconversion.ConvertKubeadmControlPlaneTemplateHubToV1Beta1, nil,
		),
	}
}

// isStored reports whether an API server returns a template otherwise than it is written, and not only with the defaults
// of its schema.
func isStored(kind, written, wanted string) bool {
	hasWebhook := kind == manifest.KindAWSClusterTemplate || kind == manifest.KindManagedPlaneTemplate
	return hasWebhook || written == manifest.VersionOld || wanted == manifest.VersionOld
}

// defaulting is the method of a webhook.
type defaulting func(ctx context.Context, o runtime.Object) error

// defaulted runs a webhook on a template of which there is only the newest version.
func defaulted[T any, P interface {
	*T
	runtime.Object
}](defaults defaulting) stored {
	return func(ctx context.Context, value map[string]any, _, _ string) (any, error) {
		template := P(new(T))
		if err := decodeInto(value, template); err != nil {
			return nil, err
		}
		return template, defaults(ctx, template)
	}
}

// converted converts a template to the newest version if it is not in it, runs its webhook, and converts it to the version
// that is asked for.
func converted[Old, New any, NewP interface {
	*New
	runtime.Object
}](to func(context.Context, *Old, *New) error, from func(context.Context, *New, *Old) error, defaults defaulting) stored {
	return func(ctx context.Context, value map[string]any, written, wanted string) (any, error) {
		older, newest, again := new(Old), new(New), new(Old)
		var err error
		if written == manifest.VersionNew {
			err = decodeInto(value, newest)
		} else if err = decodeInto(value, older); err == nil {
			err = to(ctx, older, newest)
		}
		if err == nil && defaults != nil {
			err = defaults(ctx, NewP(newest))
		}
		if err != nil || wanted == manifest.VersionNew {
			return newest, err
		}
		return again, from(ctx, newest, again)
	}
}

// storeTemplate replaces a template by what an API server returns for the version that the ClusterClass refers to.
func (t *topology) storeTemplate(ctx context.Context, o *manifest.Entry, apiVersion string) bool {
	gv, err := schema.ParseGroupVersion(apiVersion)
	ofKubeadm := o.Kind == manifest.KindControlPlaneTemplate || o.Kind == manifest.KindConfigTemplate
	if !ofKubeadm && o.Version == manifest.VersionNew {
		gv.Version = manifest.VersionNew
	}
	store := storedTemplates()[o.Kind]
	if err != nil || store == nil || !isStored(o.Kind, o.Version, gv.Version) {
		return true
	}
	value, err := t.asStored(ctx, o, store, gv)
	if err != nil {
		t.fail(o.Problem("", err.Error(), ""))
		return false
	}
	o.Value = value
	return true
}

func (t *topology) asStored(ctx context.Context, o *manifest.Entry, store stored, wanted schema.GroupVersion) (value map[string]any, err error) {
	s, err := crd.For(o.Kind, wanted.Version)
	if err != nil {
		return nil, err
	}
	var typed any
	if err := hooks.RecoverPanics(func() (err error) {
		typed, err = store(ctx, o.Value, o.Version, wanted.Version)
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
	for _, field := range []string{"kind", "metadata"} { // a conversion sets an annotation
		value[field] = o.Value[field]
	}
	value["apiVersion"] = wanted.String()
	s.Fill(value)
	return value, nil
}
