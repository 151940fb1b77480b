package cloud_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Each region has a price list in its own partition.
func TestPriceListRegion(t *testing.T) {
	for region, want := range map[string]string{
		"us-east-1": "us-east-1", "us-west-2": "us-east-1", "ca-central-1": "us-east-1", "sa-east-1": "us-east-1", "mx-central-1": "us-east-1",
		"eu-west-1": "eu-central-1", "af-south-1": "eu-central-1", "me-central-1": "eu-central-1", "il-central-1": "eu-central-1",
		"ap-southeast-1": "ap-south-1", "cn-north-1": "cn-northwest-1", "us-gov-west-1": "", "us-iso-east-1": "", "us-isob-east-1": "", "eu-isoe-west-1": "",
	} {
		require.Equal(t, want, cloud.PriceListRegion(region), region)
	}
}
