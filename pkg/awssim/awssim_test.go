package awssim_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/pkg/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// A program that uses the SDK makes a VPC; the account shows it.
func Example() {
	account := awssim.New(awssim.Options{Region: "eu-west-1"})
	client := ec2.NewFromConfig(account.Config())
	_, err := client.CreateVpc(context.Background(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/30")})
	fmt.Println(err)
	_, err = client.CreateVpc(context.Background(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16")})
	fmt.Println(err, len(account.Inventory()))
	for _, call := range account.Calls() {
		fmt.Println(call.Service, call.Operation, call.Code)
	}
	// Output:
	// operation error EC2: CreateVpc, api error InvalidVpc.Range: the CIDR '10.0.0.0/30' is invalid: it must be between /16 and /28
	// <nil> 1
	// EC2 CreateVpc InvalidVpc.Range
	// EC2 CreateVpc
}

// A NAT gateway becomes available after minutes, which take no time in a bubble.
func TestWaitersTakeVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := awssim.New(awssim.Options{Bare: true})
		client, began := ec2.NewFromConfig(account.Config()), time.Now()
		vpc, err := client.CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16")})
		require.NoError(t, err)
		subnet, err := client.CreateSubnet(t.Context(), &ec2.CreateSubnetInput{VpcId: vpc.Vpc.VpcId, CidrBlock: aws.String("10.0.0.0/24")})
		require.NoError(t, err)
		internet, err := client.CreateInternetGateway(t.Context(), &ec2.CreateInternetGatewayInput{})
		require.NoError(t, err)
		_, err = client.AttachInternetGateway(
			t.Context(),
			&ec2.AttachInternetGatewayInput{InternetGatewayId: internet.InternetGateway.InternetGatewayId, VpcId: vpc.Vpc.VpcId},
		)
		require.NoError(t, err)
		address, err := client.AllocateAddress(t.Context(), &ec2.AllocateAddressInput{Domain: "vpc"})
		require.NoError(t, err)
		gateway, err := client.CreateNatGateway(t.Context(), &ec2.CreateNatGatewayInput{SubnetId: subnet.Subnet.SubnetId, AllocationId: address.AllocationId})
		require.NoError(t, err)
		waiter := ec2.NewNatGatewayAvailableWaiter(client)
		require.NoError(t, waiter.Wait(t.Context(), &ec2.DescribeNatGatewaysInput{NatGatewayIds: []string{*gateway.NatGateway.NatGatewayId}}, 10*time.Minute))
		assert.Greater(t, time.Since(began), 30*time.Second)
		assert.Equal(t, time.Now(), account.Now())
	})
}

// A saved account continues with its resources, at the time at which it was saved.
func TestSaveAndLoad(t *testing.T) {
	account := awssim.New(awssim.Options{Region: "eu-west-1", Speed: 1000})
	_, err := ec2.NewFromConfig(account.Config()).CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16")})
	require.NoError(t, err)
	require.NoError(t, account.Sleep(t.Context(), time.Minute))
	var file bytes.Buffer
	require.NoError(t, account.Save(&file))
	saved := account.Now()

	_, err = awssim.Load(bytes.NewReader(file.Bytes()), awssim.Options{Region: "us-east-1"})
	require.ErrorContains(t, err, "its region is eu-west-1, not us-east-1")
	_, err = awssim.Load(bytes.NewReader([]byte("{")), awssim.Options{})
	require.ErrorContains(t, err, "simulated account: ")
	loaded, err := awssim.Load(&file, awssim.Options{Speed: 1000})
	require.NoError(t, err)
	assert.Equal(t, "eu-west-1", loaded.Config().Region)
	assert.Equal(t, account.Inventory(), loaded.Inventory())
	assert.WithinDuration(t, saved, loaded.Now(), 10*time.Minute, "a thousand times as fast")
}

// Calls are refused as long as the program says so.
func TestRefuse(t *testing.T) {
	account := awssim.New(awssim.Options{})
	client := ec2.NewFromConfig(account.Config())
	account.Refuse(func(service, operation string) error {
		if service == "EC2" && operation == "DescribeVpcs" {
			return awssim.APIError("UnauthorizedOperation", "no")
		}
		return nil
	})
	_, err := client.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
	var refused smithy.APIError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "UnauthorizedOperation", refused.ErrorCode())
	_, err = client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	require.NoError(t, err)
	account.Refuse(nil)
	_, err = client.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
	require.NoError(t, err)
}

// Clients in other processes use the account over HTTP.
func TestHandler(t *testing.T) {
	account := awssim.New(awssim.Options{Bare: true})
	handler, err := account.Handler()
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	defer server.Close()
	client := ec2.NewFromConfig(aws.Config{
		Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
	})
	_, err = client.CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16")})
	require.NoError(t, err)
	assert.Len(t, account.Inventory(), 1)
}

// pkg/reconcile makes a cluster in the account, whose API server answers, and deletes it.
func TestClusterOfReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := reconcile.LoadFile("../../configs/quickstart.yaml", input.LoadOptions{})
		require.NoError(t, err)
		account := awssim.New(awssim.Options{Region: m.Region(), Lag: 10 * time.Second, Page: 5})
		before := account.Inventory()
		theCluster := reconcile.Open(m, cluster.Target{Config: account.Config(), Transport: account.Transport, Clock: account, Owner: "test", Timeout: time.Hour})
		_, err = theCluster.Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.NotEqual(t, before, account.Inventory())
		_, err = theCluster.Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.Equal(t, before, account.Inventory())
	})
}
