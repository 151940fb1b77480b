//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// How much a package may allocate before main begins. Our packages compile expressions and make tables when they are first used. 100 KiB take
// about half a millisecond. The sizes of maps vary, so a package must be listed from 200 KiB on, and may be from 100 KiB on.
const (
	mostUnlisted = 200 << 10
	leastListed  = 100 << 10
	mostOfOurs   = 4 << 10
)

// initialised lists the packages that allocate more, and why they are linked.
func initialised() map[string]string {
	const (
		client = "a client of AWS: its operations, with generated schemas"
		types  = "the types of Cluster API and Cluster API Provider AWS are in one package with their webhooks, which import it"
		rules  = "CEL and the schemas of Kubernetes: the checks of manifests are those of an API server"
	)
	return map[string]string{
		"github.com/aws/aws-sdk-go-v2/service/eks/schemas":               client,
		"github.com/aws/aws-sdk-go-v2/service/eventbridge/schemas":       client,
		"github.com/aws/aws-sdk-go-v2/service/kms/schemas":               client,
		"github.com/aws/aws-sdk-go-v2/service/ssm/schemas":               client,
		"github.com/coredns/corefile-migration/migration":                "the versions of CoreDNS that Cluster API takes: its webhook has the same table",
		"github.com/google/go-cmp/cmp":                                   types,
		"github.com/Masterminds/semver/v3":                               "versions of add-ons and charts",
		"github.com/olekukonko/tablewriter/pkg/twwidth":                  "the tables of the commands that upstream has",
		"google.golang.org/protobuf/reflect/protodesc":                   rules,
		"k8s.io/client-go/kubernetes/scheme":                             "the simulated API server knows all kinds of Kubernetes; controller-runtime imports it, too",
		"k8s.io/cluster-bootstrap/token/util":                            types,
		"k8s.io/component-base/metrics/legacyregistry":                   rules,
		"k8s.io/kube-openapi/pkg/validation/strfmt":                      rules,
		"sigs.k8s.io/controller-runtime/pkg/client/apiutil":              types,
		"sigs.k8s.io/controller-runtime/pkg/internal/controller/metrics": types,
	}
}

// TestInitialisation limits what packages allocate before main begins, because every command pays for it.
func TestInitialisation(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), binary(t), "version")
	var trace bytes.Buffer
	cmd.Env, cmd.Stderr = append(os.Environ(), "GODEBUG=inittrace=1"), &trace
	require.NoError(t, cmd.Run())
	lines := regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, (\d+) allocs$`).FindAllStringSubmatch(trace.String(), -1)
	require.Greater(t, len(lines), 50, trace.String())
	reasons, total := initialised(), 0
	for _, x := range lines {
		bytes, err := strconv.Atoi(x[2])
		require.NoError(t, err)
		total += bytes
		most := mostUnlisted
		if strings.HasPrefix(x[1], "github.com/clusterawsadm/") {
			most = mostOfOurs
		}
		if _, known := reasons[x[1]]; !known {
			assert.LessOrEqual(t, bytes, most, "%s: make it when it is first used, or say in initialised why it cannot be", x[1])
		}
		if bytes > leastListed {
			delete(reasons, x[1])
		}
	}
	assert.Empty(t, reasons, "these do not allocate as much any more")
	t.Logf("%d KiB in all", total>>10)
}
