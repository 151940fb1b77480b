package hooks

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	bootstrapadmission "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/admission"
	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// scaleInReplicas is the number of replicas from which a rollout of the control plane may
// delete a machine first (maxSurge 0).
const scaleInReplicas = 3

// DefaultControlPlane sets the defaults of the KubeadmControlPlane webhook.
func DefaultControlPlane(k *controlplanev1.KubeadmControlPlane) {
	if k.Spec.Replicas == nil {
		one := int32(1)
		k.Spec.Replicas = &one
	}
	k.Spec.Version = WithV(k.Spec.Version)
	strategy := &k.Spec.Rollout.Strategy
	strategy.Type = controlplanev1.RollingUpdateStrategyType
	strategy.RollingUpdate.MaxSurge = intstr.ValueOrDefault(strategy.RollingUpdate.MaxSurge, intstr.FromInt32(1))
}

// ValidateControlPlane applies the rules of the KubeadmControlPlane webhook.
func ValidateControlPlane(k *controlplanev1.KubeadmControlPlane) field.ErrorList {
	spec := field.NewPath("spec")
	config := spec.Child("kubeadmConfigSpec")
	errs := replicaErrors(k, spec)
	errs = append(errs, k.Spec.MachineTemplate.ObjectMeta.Validate(spec.Child("machineTemplate", "metadata"))...)
	errs = append(errs, versionErrors(k.Spec.Version, spec.Child("version"))...)
	errs = append(errs, surgeErrors(k, spec)...)
	errs = append(errs, validityErrors(k, spec)...)
	errs = append(errs, namingErrors(k.Spec.MachineNaming.Template, "kubeadmControlPlane", spec.Child("machineNaming", "template"))...)
	errs = append(errs, clusterConfigurationErrors(&k.Spec.KubeadmConfigSpec.ClusterConfiguration, config.Child("clusterConfiguration"))...)
	return append(errs, ValidateConfig(&k.Spec.KubeadmConfigSpec, true, config)...)
}

// ValidateConfig runs Cluster API's checks of a kubeadm configuration.
func ValidateConfig(c *bootstrapv1.KubeadmConfigSpec, controlPlane bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	err := RecoverPanics(func() error {
		errs = bootstrapadmission.Validate(c, controlPlane, path)
		return nil
	})
	if err != nil {
		errs = append(errs, field.Invalid(path, "", err.Error()))
	}
	return errs
}

// mostEtcdMembers is the largest number that etcd's documentation recommends:
// https://etcd.io/docs/v3.6/faq/#what-is-maximum-cluster-size
const mostEtcdMembers = 7

func replicaErrors(k *controlplanev1.KubeadmControlPlane, spec *field.Path) field.ErrorList {
	replicas := *k.Spec.Replicas
	path := spec.Child("replicas")
	switch {
	case replicas <= 0:
		return field.ErrorList{field.Invalid(path, replicas, "a control plane needs at least one machine")}
	case replicas%2 == 0 && !k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.IsDefined():
		return field.ErrorList{
			field.Invalid(path, replicas, fmt.Sprintf("etcd on the control plane needs an odd number of machines, such as %d", min(replicas+1, mostEtcdMembers))),
		}
	default:
		return nil
	}
}

// surgeErrors checks maxSurge: 1, or 0 if there are enough replicas.
func surgeErrors(k *controlplanev1.KubeadmControlPlane, spec *field.Path) field.ErrorList {
	surge := k.Spec.Rollout.Strategy.RollingUpdate.MaxSurge
	path := spec.Child("rollout", "strategy", "rollingUpdate", "maxSurge")
	switch n := surge.IntValue(); {
	case n != 0 && n != 1:
		return field.ErrorList{field.Invalid(path, surge.String(), "must be 0 or 1")}
	case n == 0 && *k.Spec.Replicas < scaleInReplicas:
		return field.ErrorList{field.Invalid(path, surge.IntVal, fmt.Sprintf("may be 0 only with %d replicas or more", scaleInReplicas))}
	default:
		return nil
	}
}

// validityErrors compares the lifetimes of certificates.
func validityErrors(k *controlplanev1.KubeadmControlPlane, spec *field.Path) field.ErrorList {
	config := k.Spec.KubeadmConfigSpec.ClusterConfiguration
	days := config.CertificateValidityPeriodDays
	if days == 0 {
		return nil
	}
	var errs field.ErrorList
	limit := config.CACertificateValidityPeriodDays
	if limit == 0 {
		limit = secret.DefaultCACertificatesExpiryDays
	}
	if days > limit {
		errs = append(errs, field.Invalid(spec.Child("kubeadmConfigSpec", "clusterConfiguration", "certificateValidityPeriodDays"), days,
			fmt.Sprintf("must not exceed the validity of the CA, %d days", limit)))
	}
	if before := k.Spec.Rollout.Before.CertificatesExpiryDays; before >= days {
		errs = append(errs, field.Invalid(spec.Child("rollout", "before", "certificatesExpiryDays"), before,
			fmt.Sprintf("must be less than certificateValidityPeriodDays, %d", days)))
	}
	return errs
}

func clusterConfigurationErrors(c *bootstrapv1.ClusterConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	notInTags := regex.Of(`[^-a-zA-Z0-9_.]`)
	dns := c.DNS.ImageTag
	if notInTags.MatchString(dns) {
		errs = append(errs, field.Invalid(path.Child("dns", "imageTag"), dns, "is not an image tag"))
	} else if _, err := semver.ParseTolerant(strings.ReplaceAll(dns, "_", "+")); dns != "" && err != nil {
		errs = append(errs, field.Invalid(path.Child("dns", "imageTag"), dns, "is not a version of CoreDNS"))
	}
	if tag := c.Etcd.Local.ImageTag; notInTags.MatchString(tag) {
		errs = append(errs, field.Invalid(path.Child("etcd", "local", "imageTag"), tag, "is not an image tag"))
	}
	if c.Etcd.Local.IsDefined() && c.Etcd.External.IsDefined() {
		errs = append(errs, field.Forbidden(path.Child("etcd", "local"), "etcd is either local or external, not both"))
	}
	return errs
}
