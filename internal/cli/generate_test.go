package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

func TestGenerate(t *testing.T) {
	s := newShell(t)
	require.Equal(t, 0, s.run("cluster", "generate", "prod", "--region", "eu-central-1"))
	assert.Contains(t, s.out.String(), "name: prod-control-plane\n")
	assert.Contains(t, s.out.String(), "  region: eu-central-1\n")
	assert.NotContains(t, s.out.String(), "quickstart")
	assert.True(t, strings.HasPrefix(s.out.String(), "# "), "it begins with an explanation")

	for args, want := range map[string]string{
		"--kubernetes-version 1.33":                      "--kubernetes-version: machine images need a full version, such as v1.33.2",
		"--kubernetes-version newest":                    `--kubernetes-version: "newest" is not a Kubernetes version, such as v1.34.2`,
		"--control-plane-machine-count 2":                "--control-plane-machine-count: etcd needs an odd number of machines, not 2",
		"--control-plane-machine-count 3 --flavor eks":   "--control-plane-machine-count: the flavor eks has no machines of this type",
		"--worker-machine-count 3 --flavor eks-fargate":  "--worker-machine-count: the flavor eks-fargate has no machines of this type",
		"--worker-machine-count -1":                      "--worker-machine-count: -1 is not a number of machines",
		"--control-plane-machine-count -1":               "--control-plane-machine-count: -1 is not a number of machines",
		"--region foo":                                   `--region: "foo" is not an AWS region, such as eu-west-1`,
		"--region eu-west-1a":                            `--region: "eu-west-1a" is not an AWS region`,
		"--worker-machine-count many":                    `--worker-machine-count: "many" is not a whole number`,
		"--control-plane-machine-count 3 --flavor sales": `invalid argument "sales" for "--flavor" flag`,
	} {
		require.Equal(t, env.Wrong, s.run(append([]string{"cluster", "generate", "demo"}, strings.Fields(args)...)...), args)
		assert.Contains(t, s.err.String(), want)
		assert.Empty(t, s.out.String())
	}
}

// TestGenerateAsAsked generates every example with another region, version and size.
func TestGenerateAsAsked(t *testing.T) {
	for _, flavor := range flavors(t) {
		t.Run(flavor, func(t *testing.T) {
			s := newShell(t)
			if slices.Contains(edgeFlavors, flavor) {
				require.Equal(t, env.Wrong, s.run("cluster", "generate", "mine", "--flavor", flavor, "--region", "eu-west-1"))
				assert.Contains(t, s.err.String(), "this flavor is an example with the zone us-east-1-")
				return
			}
			require.Equal(t, 0, s.run("cluster", "generate", "mine", "--flavor", flavor, "--region", "eu-west-1", "--kubernetes-version", "1.33.4"), s.err.String())
			assert.NotContains(t, s.out.String(), "us-east-1")
			assert.NotContains(t, s.out.String(), "eu-central-1")
			assert.NotRegexp(t, `(?m)^[^#]*\bversion: v1\.34`, s.out.String())
			text := s.out.String()
			if s.run("cluster", "generate", "mine", "--flavor", flavor, "--region", "eu-west-1", "--kubernetes-version", "1.33.4", "--worker-machine-count", "4") == 0 {
				text = s.out.String()
				assert.Regexp(t, "replicas: 4", text)
			}
			s.variables["CAPA_EKS_IAM"] = "true"
			generated := filepath.Join(t.TempDir(), "cluster.yaml")
			require.NoError(t, os.WriteFile(generated, []byte(text), 0o600))
			require.Equal(t, 0, s.run("cluster", "validate", "-f", generated), s.err.String())
			assert.Regexp(t, `cluster mine in eu-west-1, Kubernetes v1\.33`, s.out.String())
		})
	}
}

// edgeFlavors have a zone that is in one region only.
var edgeFlavors = []string{"local-zone", "wavelength"}

// TestEveryFlavorIsStrict generates every example with several names in regions of three partitions: none has a
// warning.
func TestEveryFlavorIsStrict(t *testing.T) {
	for _, flavor := range flavors(t) {
		t.Run(flavor, func(t *testing.T) {
			s := newShell(t)
			if flavor == "eks-iam" {
				s.variables["CAPA_EKS_IAM"] = "true" // as its text says
			}
			const long = "a-cluster-with-a-name-of-45-characters-or-more"
			for _, x := range []struct{ name, region string }{
				{"a", "us-east-1"},
				{flavor, "us-east-1"},
				{"quickstart", "us-east-1"},
				{"team-a-prod", "us-east-1"},
				{long, "us-east-1"},
				{long, "eu-west-1"},
				{long, "cn-north-1"},
				{long, "us-gov-west-1"},
			} {
				if x.region != "us-east-1" && slices.Contains(edgeFlavors, flavor) {
					continue
				}
				require.Equal(t, 0, s.run("cluster", "generate", x.name, "--flavor", flavor, "--region", x.region), s.err.String())
				s.In = strings.NewReader(s.out.String())
				code := s.run("cluster", "validate", "--strict", "-f", "-")
				if flavor == "classic-elb" { // upstream has deprecated its load balancer, which is what the example is for
					require.Equal(t, env.Wrong, code)
					assert.Contains(t, s.err.String(), "error: 1 problem\n")
					continue
				}
				require.Equal(t, 0, code, "%s in %s: %s", x.name, x.region, s.err.String())
			}
		})
	}
}

// TestGenerateWithLongNames refuses names that leave no place for those of the objects. Two clusters with long names
// have two buckets and two load balancers.
func TestGenerateWithLongNames(t *testing.T) {
	s := newShell(t)
	long := strings.Repeat("n", 58)
	require.Equal(t, env.Wrong, s.run("cluster", "generate", long, "--flavor", "eks-addons"))
	assert.Contains(
		t,
		s.err.String(),
		"is too long a name for a cluster of the flavor eks-addons, whose groups of machines have names that begin with it: use 56 characters at most\n",
	)
	assert.Empty(t, s.out.String())
	require.Equal(t, 0, s.run("cluster", "generate", long, "--flavor", "eks-fargate"), s.err.String())

	for flavor, name := range map[string]string{
		"flatcar": `  s3Bucket:\n    name: (\S+)`,
		"bastion": `  secondaryControlPlaneLoadBalancer:\n    name: (\S+)`,
	} {
		names := map[string]bool{}
		for _, end := range []string{"a", "b"} {
			require.Equal(t, 0, s.run("cluster", "generate", long[:40]+end, "--flavor", flavor), s.err.String())
			names[regexp.MustCompile(name).FindStringSubmatch(s.out.String())[1]] = true
		}
		assert.Len(t, names, 2, flavor)
	}
}

// flavors lists all flavors.
func flavors(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../../configs/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	require.Greater(t, len(names), 20)
	return names
}

// TestEveryFlavor generates every example with another name: it is valid, and only names
// differ.
func TestEveryFlavor(t *testing.T) {
	for _, flavor := range flavors(t) {
		t.Run(flavor, func(t *testing.T) {
			s := newShell(t)
			require.Equal(t, 0, s.run("cluster", "generate", "mine", "--flavor", flavor), s.err.String())
			example, err := os.ReadFile("../../configs/" + flavor + ".yaml")
			require.NoError(t, err)
			was, is := strings.Split(strings.TrimSpace(string(example)), "\n"), strings.Split(s.out.String(), "\n")
			renamed := regexp.MustCompile(`(name|Name|clusterName|cluster-name|deployment-name|role|karpenter\.sh/discovery): (\$\{\w+:=[a-z-]+-)?mine`)
			named := regexp.MustCompile(`(ame|role|discovery): `)
			n := 0
			for _, line := range is { // what is added is between the lines of the example, and after them
				if n < len(was) && (line == was[n] || renamed.MatchString(line) && named.MatchString(was[n])) {
					n++
				}
			}
			require.Equal(t, len(was), n, "missing: %q", was[min(n, len(was)-1)])
			s.variables["CAPA_EKS_IAM"] = "true"
			generated := filepath.Join(t.TempDir(), "cluster.yaml")
			require.NoError(t, os.WriteFile(generated, s.out.Bytes(), 0o600))
			require.Equal(t, 0, s.run("cluster", "validate", "-f", generated), s.err.String())
			// The load balancer of classic-elb is deprecated, and the role of eks-ipv6 is for those who bring one.
			if flavor != "classic-elb" && flavor != "eks-ipv6" {
				assert.Empty(t, s.err.String())
			}
			assert.Contains(t, s.out.String(), "cluster mine in ")
		})
	}
}

// Flavors may have the names of similar templates of Cluster API Provider AWS.
func TestFlavorsOfClusterctl(t *testing.T) {
	s := newSession(t)
	for theirs, ours := range map[string]string{"machinepool": "machine-pool", "eks-managedmachinepool": "eks", "flatcar-machinepool": "flatcar-pool", "simple-clusterclass": "clusterclass"} {
		require.Equal(t, 0, s.run("cluster", "generate", "mine", "--flavor", ours), s.err.String())
		want := s.out.String()
		require.Equal(t, 0, s.run("cluster", "generate", "mine", "--flavor", theirs), s.err.String())
		require.Equal(t, want, s.out.String())
	}
}
