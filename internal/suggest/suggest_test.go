package suggest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

func TestDidYouMean(t *testing.T) {
	known := []string{"stackName", "region", "eks"}
	assert.Equal(t, "stackName", suggest.Nearest("stackname", known))
	assert.Equal(t, "region", suggest.Nearest("regoin", known))
	assert.Empty(t, suggest.Nearest("tags", known))
	assert.Empty(t, suggest.Nearest("yes", []string{"set"}), "two letters of three")
	assert.Equal(t, `did you mean "eks"?`, suggest.DidYouMean("EKS", known))
	assert.Equal(t, "known names: eks, region, stackName", suggest.DidYouMean("somethingElse", known))
	assert.Empty(t, suggest.DidYouMean("a", nil))
	options := []string{"enclaveOptions", "instanceMetadataOptions", "instanceType"}
	assert.Equal(t, "instanceMetadataOptions", suggest.Nearest("metadataOptions", options), "a part of one name")
	assert.Equal(t, "instanceType", suggest.Nearest("instanceTyp", options))
	assert.Empty(t, suggest.Nearest("instance", options), "a part of two names")
}
