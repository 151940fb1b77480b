package ec2_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// An import reads a launch template as the spec that it was made from.
func TestLaunchTemplateIsReadBack(t *testing.T) {
	for name, set := range map[string]func(s *expinfrav1.AWSLaunchTemplate){
		"as it is": func(*expinfrav1.AWSLaunchTemplate) {},
		"a key pair and spot instances": func(s *expinfrav1.AWSLaunchTemplate) {
			s.SSHKeyName, s.SpotMarketOptions = new("mine"), &infrav1.SpotMarketOptions{MaxPrice: new("0.9")}
		},
		"spot instances of any price": func(s *expinfrav1.AWSLaunchTemplate) { s.SpotMarketOptions = &infrav1.SpotMarketOptions{} },
		"no capacity reservation": func(s *expinfrav1.AWSLaunchTemplate) {
			s.CapacityReservationPreference = infrav1.CapacityReservationPreferenceNone
		},
		"metadata over IPv6": func(s *expinfrav1.AWSLaunchTemplate) {
			s.InstanceMetadataOptions = &infrav1.InstanceMetadataOptions{
				HTTPEndpoint: infrav1.InstanceMetadataEndpointStateEnabled, HTTPTokens: infrav1.HTTPTokensStateRequired, HTTPPutResponseHopLimit: 3,
				InstanceMetadataTags: infrav1.InstanceMetadataEndpointStateDisabled, HTTPProtocolIPv6: infrav1.InstanceMetadataEndpointStateEnabled,
			}
		},
		"names of resources": func(s *expinfrav1.AWSLaunchTemplate) {
			s.PrivateDNSName = &infrav1.PrivateDNSName{HostnameType: new("resource-name"), EnableResourceNameDNSARecord: new(true), EnableResourceNameDNSAAAARecord: new(false)}
		},
		"volumes": func(s *expinfrav1.AWSLaunchTemplate) {
			s.RootVolume = &infrav1.Volume{Size: 90, Type: "gp3", IOPS: 4000, Throughput: new(int64(250))}
			s.NonRootVolumes = []infrav1.Volume{
				{DeviceName: "/dev/xvdb", Size: 20, Type: "io2", IOPS: 500, Encrypted: new(true), EncryptionKey: keyARN},
				{DeviceName: "/dev/xvdc", Size: 30, Type: "gp3"},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.LoadQuick(t, enginetest.MachinePool)
			pool := m.Pools[0]
			pool.Scaling.Spec.MixedInstancesPolicy = nil
			pool.Scaling.Spec.AWSLaunchTemplate.InstanceType = "m6i.large"
			want := &pool.Scaling.Spec.AWSLaunchTemplate
			set(want)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				id := ""
				a.Edit(func(s *awssim.State) { s.EC2.KeyPairs["mine"], s.KMS.Keys[keyARN] = true, &awssim.Key{} })
				enginetest.MustApply(t, m, a)
				a.Edit(func(s *awssim.State) { id = slices.Collect(maps.Keys(s.EC2.LaunchTemplates))[0] })
				have, err := ec2.TemplateContentOf(t.Context(), cloud.New(a.Config(), m.Name, cloud.Options{}), id, "$Latest")
				require.NoError(t, err)
				assert.Equal(t, want.InstanceType, have.Spec.InstanceType)
				assert.Equal(t, want.IamInstanceProfile, have.Spec.IamInstanceProfile)
				assert.Equal(t, want.SSHKeyName, have.Spec.SSHKeyName)
				assert.Equal(t, want.SpotMarketOptions, have.Spec.SpotMarketOptions)
				if want.CapacityReservationPreference != "" {
					assert.Equal(t, want.CapacityReservationPreference, have.Spec.CapacityReservationPreference)
				}
				options := *want.InstanceMetadataOptions
				if options.HTTPProtocolIPv6 == infrav1.InstanceMetadataEndpointStateDisabled {
					options.HTTPProtocolIPv6 = "" // the default
				}
				assert.Equal(t, options, *have.Spec.InstanceMetadataOptions)
				if want.PrivateDNSName != nil {
					assert.Equal(t, want.PrivateDNSName, have.Spec.PrivateDNSName)
				}
				if want.RootVolume != nil {
					assert.Equal(t, want.RootVolume, have.Spec.RootVolume)
				}
				assert.Equal(t, want.NonRootVolumes, have.Spec.NonRootVolumes)
				assert.Equal(t, "owned", have.InstanceTags["sigs.k8s.io/cluster-api-provider-aws/cluster/"+m.Name], "tags of machines: %v", have.InstanceTags)
				assert.NotEmpty(t, have.UserData)
				assert.False(t, have.OfCAPA)
			})
		})
	}
}

// An import reads a machine as the spec that it was launched with. Volumes that were attached later, as for a claim, are no part of it.
func TestMachineIsReadBack(t *testing.T) {
	for name, x := range map[string]struct {
		set  func(s *infrav1.AWSMachineSpec)
		have func(s *awssim.State)
	}{
		"a key pair": {set: func(s *infrav1.AWSMachineSpec) { s.SSHKeyName = new("mine") }, have: func(s *awssim.State) { s.EC2.KeyPairs["mine"] = true }},
		"names of resources": {set: func(s *infrav1.AWSMachineSpec) {
			s.PrivateDNSName = &infrav1.PrivateDNSName{HostnameType: new("resource-name"), EnableResourceNameDNSARecord: new(true), EnableResourceNameDNSAAAARecord: new(false)}
		}},
		"a partition": {set: func(s *infrav1.AWSMachineSpec) {
			s.InstanceType, s.PlacementGroupName, s.PlacementGroupPartition = "m5.large", "racks", 2
		}, have: func(s *awssim.State) { s.EC2.PlacementGroups["racks"] = "partition" }},
		"dedicated": {set: func(s *infrav1.AWSMachineSpec) { s.InstanceType, s.Tenancy = "m5.large", "dedicated" }},
		"a host": {set: func(s *infrav1.AWSMachineSpec) {
			s.InstanceType, s.Tenancy, s.HostID, s.HostAffinity = "m5.large", "host", new("h-0123456789abcdef0"), new("host")
		}, have: func(s *awssim.State) {
			s.EC2.Hosts = map[string]*awssim.Host{"h-0123456789abcdef0": {Type: "m5.large"}}
		}},
		"no capacity reservation": {set: func(s *infrav1.AWSMachineSpec) {
			s.CapacityReservationPreference = infrav1.CapacityReservationPreferenceNone
		}},
		"volumes": {set: func(s *infrav1.AWSMachineSpec) {
			s.RootVolume = &infrav1.Volume{Size: 90, Type: "gp3", IOPS: 4000, Throughput: new(int64(250)), Encrypted: new(true), EncryptionKey: keyARN}
			s.NonRootVolumes = []infrav1.Volume{{DeviceName: "/dev/xvdb", Size: 20, Type: "gp3", IOPS: 3000, Throughput: new(int64(125)), Encrypted: new(false)}}
		}, have: func(s *awssim.State) { s.KMS.Keys[keyARN] = &awssim.Key{} }},
	} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.LoadQuick(t, enginetest.Quickstart)
			want := &m.Deployments[0].Template.Spec.Template.Spec
			x.set(want)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				if x.have != nil {
					a.Edit(x.have)
				}
				enginetest.MustApply(t, m, a)
				id := enginetest.MachinesOf(a, "md-0")[0]
				all, err := ec2.LaunchedSpecs(t.Context(), cloud.New(a.Config(), m.Name, cloud.Options{}), []string{id})
				require.NoError(t, err)
				have := all[id]
				assert.Equal(t, want.InstanceType, have.InstanceType)
				assert.Equal(t, want.IAMInstanceProfile, have.IAMInstanceProfile)
				assert.Equal(t, want.SSHKeyName, have.SSHKeyName)
				assert.Equal(t, want.PrivateDNSName, have.PrivateDNSName)
				assert.Equal(t, want.PlacementGroupName, have.PlacementGroupName)
				assert.Equal(t, want.PlacementGroupPartition, have.PlacementGroupPartition)
				assert.Equal(t, want.HostID, have.HostID)
				if want.HostID != nil {
					assert.Equal(t, want.HostAffinity, have.HostAffinity)
				} else {
					assert.Equal(t, want.Tenancy, have.Tenancy)
				}
				assert.Equal(t, want.CapacityReservationPreference, have.CapacityReservationPreference)
				assert.Nil(t, have.SpotMarketOptions)
				assert.Equal(t, want.NonRootVolumes, have.NonRootVolumes)
				if want.RootVolume.EncryptionKey != "" {
					assert.Equal(t, want.RootVolume, have.RootVolume)
				}
			})
		})
	}
}
