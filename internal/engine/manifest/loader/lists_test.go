package loader_test

import (
	"archive/zip"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
)

// Every list in the schemas of AWS's objects either has a key by which two of its items are told
// apart, or is one of which AWS stores the order or all items. A list that a new version of Cluster
// API Provider AWS has is neither.
func TestEveryListHasAKeyOrNone(t *testing.T) {
	without := map[string]string{ // by the end of the path
		"Commands[]":               "run one after the other",
		"mounts[]":                 "cloud-init mounts one after the other",
		"mounts[][]":               "positions",
		"flags[]":                  "the last one has effect",
		"sshAuthorizedKeys[]":      "a file with lines",
		"extraOpts[]":              "arguments",
		"servers[]":                "a file with lines",
		"noProxy[]":                "a file with lines",
		"certificateAuthorities[]": "Ignition reads all",
		".files[]":                 "the last one has effect",
		".users[]":                 "the last one has effect",
		".filesystems[]":           "made one after the other",
		".partitions[]":            "made one after the other",
		"filters[]":                "a question",
		"values[]":                 "a question",
		"networkInterfaces[]":      "positions",
		"providerIDList[]":         "ignored",
		"awsLaunchTemplate.additionalSecurityGroups[]": "IDs or questions: compared as a set",
		"template.spec.additionalSecurityGroups[]":     "IDs or questions: compared as a set",
		"spec.additionalSecurityGroups[]":              "as above",
		"cidrBlocks[]":                                 "in the key of the rule",
		"ipv6CidrBlocks[]":                             "in the key of the rule",
		"sourceSecurityGroupIds[]":                     "in the key of the rule",
		"sourceSecurityGroupRoles[]":                   "in the key of the rule",
		"nodesIAMInstanceProfiles[]":                   "principals of a policy, written as a set",
	}
	archive, err := zip.OpenReader("../crd/schemas.zip")
	require.NoError(t, err)
	defer func() { require.NoError(t, archive.Close()) }()
	for _, kind := range []string{"AWSCluster", "AWSManagedControlPlane", "AWSManagedMachinePool", "AWSFargateProfile", "AWSMachinePool", "AWSMachine", "AWSMachineTemplate", "EKSConfig", "NodeadmConfig"} {
		f, err := archive.Open(kind + "/v1beta2.json")
		require.NoError(t, err)
		raw, err := io.ReadAll(f)
		require.NoError(t, err)
		var schema apiextensionsv1.JSONSchemaProps
		require.NoError(t, json.Unmarshal(raw, &schema))
		for _, list := range listsIn(schema.Properties["spec"], "spec") {
			ordered := slices.ContainsFunc(slices.Collect(maps.Keys(without)), func(end string) bool { return strings.HasSuffix(list, end) })
			keyed := slices.Contains(loader.KeyedLists(kind), list)
			assert.NotEqual(t, ordered, keyed, "%s %s: give it a key in duplicates.go, or say here why it has none", kind, list)
		}
	}
}

// listsIn returns the paths of the lists without a key in a schema.
func listsIn(s apiextensionsv1.JSONSchemaProps, path string) (lists []string) {
	if s.Items != nil && s.Items.Schema != nil {
		if s.XListType == nil || *s.XListType == "atomic" {
			lists = append(lists, path+"[]")
		}
		lists = append(lists, listsIn(*s.Items.Schema, path+"[]")...)
	}
	for name, field := range s.Properties {
		lists = append(lists, listsIn(field, path+"."+name)...)
	}
	slices.Sort(lists)
	return lists
}
