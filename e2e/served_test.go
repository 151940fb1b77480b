//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// serve runs "clusterawsadm simulate" in another process until the test ends, and returns a
// shell for its account.
func serve(t *testing.T) *shell {
	t.Helper()
	s := newShell(t, &moto.Server{})
	cmd, _, story := s.command(context.WithoutCancel(t.Context())) // it ends when the test has ended
	cmd.Args = []string{
		s.program,
		"simulate",
		"--listen",
		"127.0.0.1:0",
		"-o",
		"json",
		"--simulate-state",
		filepath.Join(t.TempDir(), "account.json"),
		"--simulate-speed",
		speed(),
	}
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		assert.NoError(t, cmd.Wait(), story)
	})
	line, err := bufio.NewReader(out).ReadBytes('}')
	require.NoError(t, err, story)
	var served struct{ Endpoint string }
	require.NoError(t, json.Unmarshal(line, &served))
	s.server.URL = served.Endpoint
	return s
}

// id runs a command of the AWS CLI that prints one ID.
func (s *shell) id(t *testing.T, query string, args ...string) string {
	t.Helper()
	return strings.TrimSpace(string(s.awsCLI(t, append(args, "--query", query, "--output", "text")...)))
}

// network makes resources with the AWS CLI, and remembers how to delete them.
type network struct {
	*shell

	*testing.T

	undo [][]string
}

// does runs a command of the AWS CLI that changes EC2.
func (n *network) does(args ...string) { n.id(n.T, "Return", append([]string{"ec2"}, args...)...) }

// makes runs a command of the AWS CLI that creates something of EC2, and returns its ID. The
// ID is added to the command that deletes it.
func (n *network) makes(query, remove, flag string, args ...string) string {
	id := n.id(n.T, query, append([]string{"ec2"}, args...)...)
	n.undo = append(n.undo, []string{remove, flag, id})
	return id
}

// remove deletes everything, beginning with what was made last.
func (n *network) remove() {
	for _, args := range slices.Backward(n.undo) {
		n.does(args...)
		if args[0] == "delete-nat-gateway" {
			n.await(args[2], "deleted")
		}
	}
}

// await waits for the state of a NAT gateway. The AWS CLI itself would wait 15 s between two looks.
func (n *network) await(gateway, state string) {
	require.Eventually(n.T, func() bool {
		return n.id(n.T, "NatGateways[0].State", "ec2", "describe-nat-gateways", "--nat-gateway-ids", gateway) == state
	}, time.Minute, time.Second)
}

// networkOfTheExample makes what configs/byo-vpc.yaml expects, and returns the IDs by the
// placeholders of that file.
func (n *network) networkOfTheExample() map[string]string {
	vpc := n.makes("Vpc.VpcId", "delete-vpc", "--vpc-id", "create-vpc", "--cidr-block", "10.20.0.0/16")
	n.does("modify-vpc-attribute", "--vpc-id", vpc, "--enable-dns-hostnames")
	gateway := n.makes("InternetGateway.InternetGatewayId", "delete-internet-gateway", "--internet-gateway-id", "create-internet-gateway")
	n.does("attach-internet-gateway", "--internet-gateway-id", gateway, "--vpc-id", vpc)
	n.undo = append(n.undo, []string{"detach-internet-gateway", "--vpc-id", vpc, "--internet-gateway-id", gateway})
	of := map[string]string{"vpc-0123456789abcdef0": vpc}
	for i, placeholder := range []string{"subnet-0000000000000001a", "subnet-0000000000000001b", "subnet-0000000000000002a", "subnet-0000000000000002b"} {
		of[placeholder] = n.makes("Subnet.SubnetId", "delete-subnet", "--subnet-id", "create-subnet", "--vpc-id", vpc,
			"--cidr-block", fmt.Sprintf("10.20.%d.0/24", i), "--availability-zone", moto.Region+placeholder[len(placeholder)-1:])
	}
	address := n.makes("AllocationId", "release-address", "--allocation-id", "allocate-address", "--domain", "vpc")
	nat := n.makes(
		"NatGateway.NatGatewayId",
		"delete-nat-gateway",
		"--nat-gateway-id",
		"create-nat-gateway",
		"--subnet-id",
		of["subnet-0000000000000001a"],
		"--allocation-id",
		address,
	)
	n.await(nat, "available")
	n.routes(vpc, []string{"--gateway-id", gateway}, of["subnet-0000000000000001a"], of["subnet-0000000000000001b"])
	n.routes(vpc, []string{"--nat-gateway-id", nat}, of["subnet-0000000000000002a"], of["subnet-0000000000000002b"])
	for placeholder, purpose := range map[string]string{"sg-0aaaaaaaaaaaaaaa1": "nodes", "sg-0aaaaaaaaaaaaaaa2": "monitoring"} {
		of[placeholder] = n.makes("GroupId", "delete-security-group", "--group-id", "create-security-group", "--vpc-id", vpc, "--group-name", purpose,
			"--description", purpose, "--tag-specifications", "ResourceType=security-group,Tags=[{Key=purpose,Value="+purpose+"}]")
	}
	return of
}

// routes makes a route table with a default route for subnets.
func (n *network) routes(vpc string, to []string, subnets ...string) {
	table := n.makes("RouteTable.RouteTableId", "delete-route-table", "--route-table-id", "create-route-table", "--vpc-id", vpc)
	n.does(append([]string{"create-route", "--route-table-id", table, "--destination-cidr-block", "0.0.0.0/0"}, to...)...)
	for _, subnet := range subnets {
		n.makes("AssociationId", "disassociate-route-table", "--association-id", "associate-route-table", "--route-table-id", table, "--subnet-id", subnet)
	}
}

// The AWS CLI makes a VPC in the served account. A cluster is created in it and deleted: in
// between, the AWS CLI shows it, afterwards nothing of it, and it deletes the VPC.
func TestServedAccountAndTheAWSCLI(t *testing.T) {
	s := serve(t)
	s.bootstrap(t, "create-cloudformation-stack")
	n := &network{shell: s, T: t}
	count := func(query string, args ...string) string { return s.id(t, "length("+query+")", args...) }
	vpcs := count("Vpcs", "ec2", "describe-vpcs")
	of := n.networkOfTheExample()
	text, err := os.ReadFile(example("byo-vpc"))
	require.NoError(t, err)
	for placeholder, id := range of {
		require.Contains(t, string(text), placeholder)
		text = bytes.ReplaceAll(text, []byte(placeholder), []byte(id))
	}
	manifest, vpc := filepath.Join(t.TempDir(), "byo-vpc.yaml"), of["vpc-0123456789abcdef0"]
	require.NoError(t, os.WriteFile(manifest, text, 0o600))

	s.run(t, 0, "create", "-f", manifest, "--yes")
	s.run(t, 0, "plan", "-f", manifest, "--detailed-exitcode")
	assert.Equal(t, "3", count("Reservations[].Instances[?VpcId=='"+vpc+"'][]", "ec2", "describe-instances"))
	assert.Equal(t, vpc, s.id(t, "LoadBalancers[].VpcId", "elbv2", "describe-load-balancers"))
	groups := count("SecurityGroups[?VpcId=='"+vpc+"']", "ec2", "describe-security-groups")
	assert.NotEqual(t, "3", groups, "the default group, the two of the example, and those of the cluster")

	s.run(t, 0, "delete", "-f", manifest, "--yes")
	assert.Equal(t, "0", count("Reservations[].Instances[?State.Name!='terminated'][]", "ec2", "describe-instances"))
	assert.Equal(t, "0", count("LoadBalancers", "elbv2", "describe-load-balancers"))
	assert.Equal(t, "3", count("SecurityGroups[?VpcId=='"+vpc+"']", "ec2", "describe-security-groups"))
	n.remove()
	assert.Equal(t, vpcs, count("Vpcs", "ec2", "describe-vpcs"))
	assert.NotContains(t, s.id(t, "Subnets[].VpcId", "ec2", "describe-subnets"), vpc)
	assert.Equal(t, "0", count("Addresses", "ec2", "describe-addresses"))
}

// The AWS CLI copies files to a bucket of the served account, lists them by folders, and copies
// them back, whatever their names are. It sends them in chunks with a checksum behind.
func TestServedBucketAndTheAWSCLI(t *testing.T) {
	s := serve(t)
	cli := func(args ...string) string { return s.id(t, "@", append([]string{"s3"}, args...)...) }
	files := map[string]string{"plain.txt": "one", "a b+c&d=é.txt": "two", "deep/er/100%.txt": "three", "deep/#hash?.txt": "four", "deep/empty": ""}
	from, to := t.TempDir(), t.TempDir()
	for name, content := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(from, name), []byte(content), 0o600))
	}
	cli("mb", "s3://a-bucket-of-files")
	cli("cp", "--recursive", from, "s3://a-bucket-of-files/")
	list := func(args ...string) (names []string) {
		for line := range strings.Lines(cli(append([]string{"ls"}, args...)...)) {
			line = strings.TrimRight(line, "\n")
			if common, ok := strings.CutPrefix(strings.TrimSpace(line), "PRE "); ok {
				names = append(names, common)
				continue
			}
			names = append(names, line[len("2026-11-25 11:13:00          3 "):])
		}
		slices.Sort(names)
		return names
	}
	assert.Equal(t, []string{"a b+c&d=é.txt", "deep/", "plain.txt"}, list("s3://a-bucket-of-files"))
	assert.Equal(t, []string{"#hash?.txt", "empty", "er/"}, list("s3://a-bucket-of-files/deep/"))
	assert.Len(t, list("--recursive", "s3://a-bucket-of-files"), len(files))

	cli("cp", "--recursive", "s3://a-bucket-of-files/", to)
	for name, content := range files {
		got, err := os.ReadFile(filepath.Join(to, name))
		require.NoError(t, err)
		assert.Equal(t, content, string(got), name)
	}
	cli("rm", "--recursive", "s3://a-bucket-of-files")
	assert.Empty(t, list("--recursive", "s3://a-bucket-of-files"))
	cli("rb", "s3://a-bucket-of-files")
}
