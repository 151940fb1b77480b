package hooks

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	"sigs.k8s.io/cluster-api-provider-aws/v2/pkg/eks"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// Limits in CAPA's webhooks for pools.
const (
	longestNodeGroupName = 64 // exclusive
	longestProfileName   = 100
	groupDefaultSeconds  = 300 // of cooldown and warmup

	LeastThroughput, mostThroughput = 125, 2000                       // MiB/s of a gp3 root volume
	leastHeartbeat, mostHeartbeat   = 30 * time.Second, 2 * time.Hour // PutLifecycleHook; CAPA's webhook permits 48 hours, which no call does
	widestRefresh                   = 100                             // percentage points between minHealthyPercentage and maxHealthyPercentage
)

// DefaultPool sets the defaults of the MachinePool webhook.
func DefaultPool(p *clusterv1.MachinePool) field.ErrorList {
	set(&p.Labels, clusterv1.ClusterNameLabel, p.Spec.ClusterName)
	template := &p.Spec.Template.Spec
	if template.Deletion.NodeDeletionTimeoutSeconds == nil {
		seconds := int32(nodeDeletionTimeout)
		template.Deletion.NodeDeletionTimeoutSeconds = &seconds
	}
	template.Version = WithV(template.Version)
	return defaultReplicas(&p.Spec.Replicas, p.Annotations)
}

// ValidatePool applies the rules of the MachinePool webhook.
func ValidatePool(p *clusterv1.MachinePool) field.ErrorList {
	spec := field.NewPath("spec")
	template := spec.Child("template")
	errs := labelValue(p.Name, field.NewPath("metadata", "name"))
	errs = append(errs, bootstrapErrors(p.Spec.Template.Spec.Bootstrap, template.Child("spec", "bootstrap"))...)
	if *p.Spec.Replicas < 0 {
		errs = append(errs, field.Invalid(spec.Child("replicas"), *p.Spec.Replicas, "must not be negative"))
	}
	if inner := p.Spec.Template.Spec.ClusterName; p.Spec.ClusterName != inner {
		errs = append(errs, field.Invalid(template.Child("spec", "clusterName"), inner,
			fmt.Sprintf("must be %q, as in spec.clusterName", p.Spec.ClusterName)))
	}
	if len(p.Spec.Template.Spec.Taints) > 0 {
		errs = append(errs, field.Forbidden(template.Child("spec", "taints"), "taints of pools are not supported"))
	}
	errs = append(errs, versionErrors(p.Spec.Template.Spec.Version, template.Child("spec", "version"))...)
	return append(errs, p.Spec.Template.Validate(template.Child("metadata"))...)
}

// DefaultNodeGroup sets the defaults of the AWSManagedMachinePool webhook.
func DefaultNodeGroup(p *expinfrav1.AWSManagedMachinePool) field.ErrorList {
	if p.Spec.UpdateConfig == nil {
		one := 1
		p.Spec.UpdateConfig = &expinfrav1.UpdateConfig{MaxUnavailable: &one}
	}
	if p.Spec.EKSNodegroupName != "" {
		return nil
	}
	name, err := eks.GenerateEKSName(p.Name, p.Namespace, longestNodeGroupName)
	p.Spec.EKSNodegroupName = name
	return internal(err, field.NewPath("spec", "eksNodegroupName"))
}

func internal(err error, path *field.Path) field.ErrorList {
	if err == nil {
		return nil
	}
	return field.ErrorList{field.InternalError(path, err)}
}

// ValidateNodeGroup applies the rules of the AWSManagedMachinePool webhook.
func ValidateNodeGroup(p *expinfrav1.AWSManagedMachinePool) field.ErrorList {
	spec := field.NewPath("spec")
	errs := p.Spec.AdditionalTags.Validate()
	if s := p.Spec.Scaling; s != nil {
		errs = append(errs, sizeErrors(s.MinSize, s.MaxSize, spec.Child("scaling"))...)
	}
	if u := p.Spec.UpdateConfig; (u.MaxUnavailable == nil) == (u.MaxUnavailablePercentage == nil) {
		errs = append(errs, field.Invalid(spec.Child("updateConfig"), "", "set one of maxUnavailable and maxUnavailablePercentage"))
	}
	if r := p.Spec.RemoteAccess; r != nil && r.Public && len(r.SourceSecurityGroups) > 0 {
		errs = append(errs, field.Forbidden(spec.Child("remoteAccess", "sourceSecurityGroups"), "must be empty with public: true"))
	}
	if t := p.Spec.AWSLaunchTemplate; t != nil {
		const twice = "must not be set together with awsLaunchTemplate, which contains it"
		if p.Spec.InstanceType != nil {
			errs = append(errs, field.Forbidden(spec.Child("instanceType"), twice))
		}
		if p.Spec.DiskSize != nil {
			errs = append(errs, field.Forbidden(spec.Child("diskSize"), twice))
		}
		errs = append(errs, volumeErrors(t, spec.Child("awsLaunchTemplate"))...)
	}
	return append(errs, hookErrors(p.Spec.AWSLifecycleHooks, spec.Child("lifecycleHooks"))...)
}

// sizeErrors checks the minimum and maximum size of a group.
func sizeErrors(least, most *int32, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if least != nil && *least < 0 {
		errs = append(errs, field.Invalid(path.Child("minSize"), *least, "must not be negative"))
	}
	if most != nil && *most < 1 {
		errs = append(errs, field.Invalid(path.Child("maxSize"), *most, "must be 1 or more"))
	}
	if least != nil && most != nil && *least > *most {
		errs = append(errs, field.Invalid(path.Child("maxSize"), *most, fmt.Sprintf("must not be less than minSize, %d", *least)))
	}
	return errs
}

// DefaultScaling sets the defaults of the AWSMachinePool webhook.
func DefaultScaling(p *expinfrav1.AWSMachinePool) {
	if p.Spec.DefaultCoolDown.Truncate(time.Second) == 0 {
		p.Spec.DefaultCoolDown.Duration = groupDefaultSeconds * time.Second
	}
	if p.Spec.DefaultInstanceWarmup.Truncate(time.Second) == 0 {
		p.Spec.DefaultInstanceWarmup.Duration = groupDefaultSeconds * time.Second
	}
	// The default of the storage type is that of the schema: the webhook's default,
	// UnencryptedUserData, is set too late to have an effect.
	if i := p.Spec.Ignition; i != nil && i.Version == "" && i.StorageType != infrav1.IgnitionStorageTypeOptionUnencryptedUserData {
		i.Version = infrav1.DefaultIgnitionVersion
	}
}

// ValidateScaling applies the rules of the AWSMachinePool webhook.
func ValidateScaling(p *expinfrav1.AWSMachinePool) field.ErrorList {
	spec := field.NewPath("spec")
	template := spec.Child("awsLaunchTemplate")
	errs := p.Spec.AdditionalTags.Validate()
	errs = append(errs, sizeErrors(&p.Spec.MinSize, &p.Spec.MaxSize, spec)...)
	if d := p.Spec.DefaultCoolDown.Duration; d < 0 {
		errs = append(errs, field.Invalid(spec.Child("defaultCoolDown"), d.String(), "must not be negative"))
	}
	if d := p.Spec.DefaultInstanceWarmup.Duration; d < 0 {
		errs = append(errs, field.Invalid(spec.Child("defaultInstanceWarmup"), d.String(), "must not be negative"))
	}
	for i, s := range p.Spec.Subnets {
		if s.ID != nil && s.Filters != nil {
			errs = append(errs, field.Forbidden(spec.Child("subnets").Index(i), "set id or filters, not both"))
		}
	}
	if p.Spec.AWSLaunchTemplate.SpotMarketOptions != nil && p.Spec.MixedInstancesPolicy != nil {
		errs = append(
			errs,
			field.Forbidden(template.Child("spotMarketOptions"), "must not be set together with mixedInstancesPolicy, which sets the number of spot instances"),
		)
	}
	errs = append(errs, refreshErrors(p.Spec.RefreshPreferences, spec.Child("refreshPreferences"))...)
	errs = append(errs, volumeErrors(&p.Spec.AWSLaunchTemplate, template)...)
	errs = append(errs, marketErrors(&p.Spec.AWSLaunchTemplate, template)...)
	return append(errs, hookErrors(p.Spec.AWSLifecycleHooks, spec.Child("lifecycleHooks"))...)
}

func refreshErrors(r *expinfrav1.RefreshPreferences, path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	// StartInstanceRefresh and RefreshPreferences, Amazon EC2 Auto Scaling API reference
	if s := manifest.Deref(r.Strategy); s != "" && s != "Rolling" && s != "ReplaceRootVolume" {
		errs = append(errs, field.NotSupported(path.Child("strategy"), s, []string{"Rolling", "ReplaceRootVolume"}))
	}
	for _, x := range []struct {
		name        string
		value       *int64
		least, most int64
	}{
		{"minHealthyPercentage", r.MinHealthyPercentage, 0, 100},
		{"maxHealthyPercentage", r.MaxHealthyPercentage, 100, 200},
		{"instanceWarmup", r.InstanceWarmup, 0, math.MaxInt32},
	} {
		if x.value != nil && (*x.value < x.least || *x.value > x.most) {
			errs = append(errs, field.Invalid(path.Child(x.name), *x.value, fmt.Sprintf("must be %d to %d", x.least, x.most)))
		}
	}
	if r.MaxHealthyPercentage == nil || len(errs) > 0 {
		return errs
	}
	path = path.Child("maxHealthyPercentage")
	switch {
	case r.MinHealthyPercentage == nil:
		return field.ErrorList{field.Forbidden(path, "must not be set without minHealthyPercentage")}
	case *r.MaxHealthyPercentage-*r.MinHealthyPercentage > widestRefresh:
		return field.ErrorList{field.Invalid(path, *r.MaxHealthyPercentage, fmt.Sprintf("must not be more than %d above minHealthyPercentage", widestRefresh))}
	default:
		return nil
	}
}

// volumeErrors checks the disks and security groups of a launch template.
func volumeErrors(t *expinfrav1.AWSLaunchTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if v := t.RootVolume; v != nil {
		at := path.Child("rootVolume")
		errs = append(errs, diskErrors(v, at)...)
		if v.Throughput != nil && (*v.Throughput < LeastThroughput || *v.Throughput > mostThroughput) {
			errs = append(errs, field.Invalid(at.Child("throughput"), *v.Throughput, fmt.Sprintf("must be %d to %d MiB/s", LeastThroughput, mostThroughput)))
		}
	}
	for i := range t.NonRootVolumes {
		v, at := &t.NonRootVolumes[i], path.Child("nonRootVolumes").Index(i)
		errs = append(errs, diskErrors(v, at)...)
		if v.DeviceName == "" {
			errs = append(errs, field.Required(at.Child("deviceName"), ""))
		}
		if v.Throughput != nil && *v.Throughput < 0 {
			errs = append(errs, field.Invalid(at.Child("throughput"), *v.Throughput, "must not be negative"))
		}
	}
	for i, g := range t.AdditionalSecurityGroups {
		if g.ID != nil && g.Filters != nil {
			errs = append(errs, field.Forbidden(path.Child("additionalSecurityGroups").Index(i), "set id or filters, not both"))
		}
	}
	return errs
}

func diskErrors(v *infrav1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if infrav1.VolumeTypesProvisioned.Has(string(v.Type)) && v.IOPS == 0 {
		errs = append(errs, field.Required(path.Child("iops"), fmt.Sprintf("a volume of type %s needs it", v.Type)))
	}
	if v.Throughput != nil && v.Type != infrav1.VolumeTypeGP3 {
		errs = append(errs, field.Forbidden(path.Child("throughput"), "only volumes of type gp3 have it"))
	}
	return errs
}

// marketErrors checks the purchase option of a launch template.
func marketErrors(t *expinfrav1.AWSLaunchTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	market := path.Child("marketType")
	if t.SpotMarketOptions != nil && (t.MarketType == infrav1.MarketTypeCapacityBlock || t.MarketType == infrav1.MarketTypeOnDemand) {
		errs = append(errs, field.Forbidden(market, fmt.Sprintf("must not be set together with spotMarketOptions (%s)", t.MarketType)))
	}
	if t.MarketType == infrav1.MarketTypeCapacityBlock && t.CapacityReservationID == nil {
		errs = append(errs, field.Required(path.Child("capacityReservationId"), "a CapacityBlock needs a reservation"))
	}
	return append(errs, reservationErrors(t, path)...)
}

func reservationErrors(t *expinfrav1.AWSLaunchTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	const none = "spot instances cannot use a reservation"
	spot := t.MarketType == infrav1.MarketTypeSpot || t.SpotMarketOptions != nil
	preference := path.Child("capacityReservationPreference")
	only := t.CapacityReservationPreference == infrav1.CapacityReservationPreferenceOnly
	if only && spot {
		errs = append(errs, field.Forbidden(preference, none))
	}
	if t.CapacityReservationID == nil {
		return errs
	}
	if spot {
		errs = append(errs, field.Forbidden(path.Child("capacityReservationId"), none))
	}
	if t.CapacityReservationPreference != "" && !only {
		errs = append(errs, field.Forbidden(preference, "may only be CapacityReservationsOnly with capacityReservationId"))
	}
	return errs
}

func hookErrors(hooks []expinfrav1.AWSLifecycleHook, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, h := range hooks {
		at := path.Index(i)
		if h.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		}
		if h.NotificationTargetARN != nil && h.RoleARN == nil {
			errs = append(errs, field.Required(at.Child("roleARN"), "the notification target needs it"))
		}
		if h.RoleARN != nil && h.NotificationTargetARN == nil {
			errs = append(errs, field.Required(at.Child("notificationTargetARN"), "roleARN needs it"))
		}
		if d := h.HeartbeatTimeout; d != nil && (d.Duration < leastHeartbeat || d.Duration > mostHeartbeat) {
			errs = append(errs, field.Invalid(at.Child("heartbeatTimeout"), d.Duration.String(), "must be 30 seconds to 2 hours"))
		}
	}
	return errs
}

// DefaultFargate sets the defaults of the AWSFargateProfile webhook.
func DefaultFargate(p *expinfrav1.AWSFargateProfile) field.ErrorList {
	set(&p.Labels, clusterv1.ClusterNameLabel, p.Spec.ClusterName)
	if p.Spec.ProfileName != "" {
		return nil
	}
	name, err := eks.GenerateEKSName(p.Name, p.Namespace, longestProfileName)
	p.Spec.ProfileName = name
	return internal(err, field.NewPath("spec", "profileName"))
}

// ValidateFargate applies the rules of the AWSFargateProfile webhook and the limits of
// EKS.
func ValidateFargate(p *expinfrav1.AWSFargateProfile) field.ErrorList {
	return p.Spec.AdditionalTags.Validate()
}
