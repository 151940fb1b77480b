package run_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// The error of a refused call names the field of the manifest that AWS's message is about.
func TestRefusalsAreLocated(t *testing.T) {
	workers := "      instanceType: t3.large\n      iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io\n"
	const volume = "      rootVolume:\n        size: 40\n        type: gp3\n        encrypted: true\n"
	quick := []string{workers + volume, "      rootVolume: {size: 80, type: gp3, throughput: 130}\n      spotMarketOptions: {maxPrice: '0.017'}\n" + workers}
	const md = `AWSMachineTemplate/quickstart-md-0 spec.template.spec.`
	for _, c := range []struct{ file, operation, code, message, want string }{
		{enginetest.Quickstart, "RunInstances", "InvalidParameterValue", "Invalid volume type: gp3", md + `rootVolume.type`},
		{enginetest.Quickstart, "RunInstances", "InvalidParameterValue", "Value (gp3) for parameter volumeType is invalid.", md + `rootVolume.type`},
		{enginetest.Quickstart, "RunInstances", "InvalidParameterValue", "Throughput (130) is not supported for the volume", md + `rootVolume.throughput`},
		{enginetest.Quickstart, "RunInstances", "SpotMaxPriceTooLow", "Your Spot request price of 0.017 is lower than the minimum", md + `spotMarketOptions.maxPrice`},
		{
			enginetest.Quickstart, "RunInstances", "InvalidParameterValue", "Value (nodes.cluster-api-provider-aws.sigs.k8s.io) for parameter iamInstanceProfile.name is invalid",
			md + `iamInstanceProfile`,
		},
		{enginetest.Quickstart, "RunInstances", "InvalidParameterCombination", "The parameters are not valid together", `MachineDeployment/quickstart-md-0 spec`},
		{enginetest.EKSSmall, "CreateCluster", "InvalidParameterException", "unsupported Kubernetes version 1.34", `AWSManagedControlPlane/eks spec.version`},
		{enginetest.EKSSmall, "CreateNodegroup", "InvalidParameterException", "The instance type is not valid", `AWSManagedMachinePool/eks-pool-0 spec(.instanceType)?`},
		{enginetest.EKSAddons, "CreateAddon", "InvalidParameterException", "Addon version v1.20.4-eksbuild.1 is not supported", `AWSManagedControlPlane/eks-addons spec.addons\[0\].version`},
		{
			enginetest.EKSAddons, "CreateAccessEntry", "InvalidParameterException", "The principal arn:aws:iam::123456789012:role/developers is invalid",
			`AWSManagedControlPlane/eks-addons spec.accessEntries\[1\].principalARN`,
		},
	} {
		t.Run(c.operation+" "+c.message, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, c.file)
				if c.file == enginetest.Quickstart {
					m = enginetest.Rewritten(t, c.file, quick...)
				}
				a := enginetest.Prepared(t, m)
				p := a.Process()
				p.Refuse = func(_, op string) error {
					if op != c.operation {
						return nil
					}
					return &smithy.GenericAPIError{Code: c.code, Message: c.message}
				}
				_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
				var failed *plan.ResourceError
				require.ErrorAs(t, err, &failed)
				assert.Regexp(t, `^\w[\w-]*\.yaml:\d+ `+c.want+`$`, originAbout(err, c.message), "%v", err)
			})
		})
	}
}

// originAbout returns the most exact origin of the errors with a message. The workers are looked at, not the control
// plane, which has another template.
func originAbout(err error, message string) (origin string) {
	var walk func(error)
	walk = func(one error) {
		//nolint:errorlint // it visits every error of the tree itself
		switch e := one.(type) {
		case *plan.ResourceError:
			if strings.Contains(e.Error(), message) && !strings.Contains(string(e.Resource), "control-plane") && len(e.Origin) > len(origin) {
				origin = e.Origin
			}
			walk(e.Err)
		case interface{ Unwrap() []error }:
			for _, x := range e.Unwrap() {
				walk(x)
			}
		case interface{ Unwrap() error }:
			walk(e.Unwrap())
		}
	}
	walk(err)
	return origin
}
