package lab

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/lab/wire"
)

const (
	region   = "us-east-1"
	endpoint = "http://" + awsAddress + ":5000"

	// bootService is the service that instances fetch their boot data from. They wait until
	// they can connect to it, and then use moto.
	bootService = "secretsmanager." + region + ".amazonaws.com"

	// routeAfter is for how long the first instances have no route to the service: they boot
	// beside the NAT gateways, which moto makes in an instant.
	routeAfter = 12 * time.Second
)

// eksFile is the file with the address of the API server of EKS clusters, which does not have
// to exist.
const eksFile = "eks.json"

// eksImage is the image of EKS in test/moto. Its instances do not boot.
const eksImage = "ami-0c0ffee0000000006"

// account is an account in moto_server.
type account struct {
	namespace
	wire.Client
	server *exec.Cmd

	mu     sync.Mutex
	routed bool         // or will be soon
	https  net.Listener // of bootService and other services
	tls    *http.Server
	roots  []byte // certificates, as PEM, that clients of https trust
}

// openAccount starts moto_server with the images and patches of all tests, in its own
// namespace.
func openAccount(ctx context.Context, dir string) (*account, error) {
	program, err := exec.LookPath("moto_server")
	if err != nil {
		return nil, fmt.Errorf("moto_server is not installed (pip install 'moto[server]'): %w", err)
	}
	root, err := controlplane.Root()
	if err != nil {
		return nil, err
	}
	ns, err := newHost(ctx, "aws", awsAddress)
	if err != nil {
		return nil, err
	}
	moto := filepath.Join(root, "test", "moto")
	a := &account{namespace: ns, Client: wire.Client{
		Endpoint: endpoint, Region: region,
		HTTP: &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: ns.dial, DisableKeepAlives: true}},
	}}
	a.server = ns.command(context.WithoutCancel(ctx), []string{
		"HOME=" + os.Getenv("HOME"), "MOTO_AMIS_PATH=" + filepath.Join(moto, "images.json"), "MOTO_ENABLE_AMI_VALIDATION=true",
		"MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION=true", "MOTO_IAM_LOAD_MANAGED_POLICIES=true", "PYTHONUNBUFFERED=1", "PYTHONPATH=" + moto,
		"PYTHONDONTWRITEBYTECODE=1", "MOTO_EKS=" + filepath.Join(dir, eksFile),
		"MOTO_ELASTIC_IPS=30", // the clusters of all tests are in one account, and a NAT gateway needs one
	}, program, "-H", awsAddress, "-p", "5000")
	output, err := os.Create(filepath.Join(dir, "moto.log"))
	if err != nil {
		return nil, err
	}
	a.server.Stdout, a.server.Stderr = output, output
	if err := a.server.Start(); err != nil {
		return nil, err
	}
	if err := listening(output.Name(), time.Minute); err != nil {
		return a, err
	}
	return a, a.serveTLS()
}

// serveTLS prepares a.tls, which serves moto under the names of AWS's services: /etc/hosts of instances
// has them, so that programs need no other endpoint URL.
func (a *account) serveTLS() error {
	cert, key, err := certutil.GenerateSelfSignedCertKey("*."+region+".amazonaws.com", nil, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return err
	}
	proxy, err := a.proxy()
	if err != nil {
		return err
	}
	a.roots = cert
	a.tls = &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		Handler: proxy,
	}
	return nil
}

// proxy returns a reverse proxy of moto.
func (a *account) proxy() (*httputil.ReverseProxy, error) {
	target, err := url.Parse(a.Endpoint)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{Transport: a.HTTP.Transport, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }}, nil
}

// listening waits until the server logs that it listens.
func listening(log string, patience time.Duration) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		f, err := os.Open(log)
		if err != nil {
			return err
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if strings.Contains(lines.Text(), "Running on") {
				return f.Close()
			}
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return errors.New("moto_server does not listen; see " + log)
}

// route makes instances able to connect to bootService, some time after the first call.
func (a *account) route(ctx context.Context, after time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.routed {
		return
	}
	a.routed = true
	time.AfterFunc(after, func() {
		l, err := a.listen(ctx, net.JoinHostPort(awsAddress, "443"))
		if err != nil {
			return // the instances wait, and say so on their consoles
		}
		a.mu.Lock()
		a.https = l
		a.mu.Unlock()
		_ = a.tls.ServeTLS(l, "", "") // until it is closed
	})
}

func (a *account) close() error {
	a.mu.Lock()
	if a.https != nil {
		_ = a.https.Close()
	}
	a.mu.Unlock()
	if err := a.server.Cancel(); err != nil {
		return err
	}
	_ = a.server.Wait() // it was killed
	return nil
}

// ec2 and elb make calls.
func (a *account) ec2(ctx context.Context, action string, answer any, parameters ...string) error {
	return a.Ask(ctx, "ec2", "2016-11-15", action, answer, parameters...)
}

func (a *account) elb(ctx context.Context, action string, answer any, parameters ...string) error {
	return a.Ask(ctx, "elasticloadbalancing", "2015-12-01", action, answer, parameters...)
}

// userData returns the user data of an instance.
func (a *account) userData(ctx context.Context, id string) ([]byte, error) {
	var answer struct {
		Value string `xml:"userData>value"`
	}
	if err := a.ec2(ctx, "DescribeInstanceAttribute", &answer, "InstanceId", id, "Attribute", "userData"); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(answer.Value)
}

// version returns the Kubernetes version of an image, from its name.
func (a *account) version(ctx context.Context, image string) (string, error) {
	var answer struct {
		Names []string `xml:"imagesSet>item>name"`
	}
	if err := a.ec2(ctx, "DescribeImages", &answer, "ImageId.1", image); err != nil {
		return "", err
	}
	for _, name := range answer.Names {
		if v := regexp.MustCompile(`-(v1\.\d+\.\d+)-`).FindStringSubmatch(name); v != nil {
			return v[1], nil
		}
	}
	return "", fmt.Errorf("image %s has no version of Kubernetes in its name %q", image, answer.Names)
}

// terminate terminates an instance, as a user would in the console.
func (a *account) terminate(ctx context.Context, id string) error {
	return a.ec2(ctx, "TerminateInstances", &struct{}{}, "InstanceId.1", id)
}

// loadBalancer is a load balancer with the IDs of its instances.
type loadBalancer struct {
	ARN     string `xml:"LoadBalancerArn"`
	Name    string `xml:"DNSName"`
	targets []string
	ipv6    bool        // it reaches its targets over IPv6
	probes  healthCheck // of its first target group, which is that of the API server
}

func (a *account) loadBalancers(ctx context.Context) ([]loadBalancer, error) {
	var answer struct {
		All []loadBalancer `xml:"DescribeLoadBalancersResult>LoadBalancers>member"`
	}
	if err := a.elb(ctx, "DescribeLoadBalancers", &answer); err != nil {
		return nil, err
	}
	for i := range answer.All {
		var groups struct {
			All []struct {
				ARN    string `xml:"TargetGroupArn"`
				Family string `xml:"IpAddressType"`
				healthCheck
			} `xml:"DescribeTargetGroupsResult>TargetGroups>member"`
		}
		if err := a.elb(ctx, "DescribeTargetGroups", &groups, "LoadBalancerArn", answer.All[i].ARN); err != nil {
			return nil, err
		}
		if len(groups.All) > 0 {
			answer.All[i].probes, answer.All[i].ipv6 = groups.All[0].healthCheck, groups.All[0].Family == "ipv6"
		}
		for _, group := range groups.All {
			var targets struct {
				IDs []string `xml:"DescribeTargetHealthResult>TargetHealthDescriptions>member>Target>Id"`
			}
			if err := a.elb(ctx, "DescribeTargetHealth", &targets, "TargetGroupArn", group.ARN); err != nil {
				return nil, err
			}
			answer.All[i].targets = append(answer.All[i].targets, targets.IDs...)
		}
	}
	return answer.All, nil
}
