package bootdata

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secretstypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// TokenSource hands out the bootstrap token with which machines join.
type TokenSource interface {
	// Needs lists the edges to the resource of the token.
	Needs() []graph.Edge
	// Current returns a token that is valid for as long as a machine boots.
	Current(ctx context.Context, c *cloud.Clients) (string, error)
}

// Data is the boot data of a machine, which it gets in its user data, or from
// Secrets Manager, Parameter Store or S3, as CAPA does. It is created when the
// machine is launched.
type Data struct {
	// Plain is used as it is; with it, no other field matters.
	Plain []byte

	// EKS says how machines join a cluster of EKS; nil for kubeadm, of which
	// the next four are.
	EKS      *EKSJoin
	Machine  boot.Machine // without its endpoint, keys and token
	Endpoint Endpoint
	PKI      *graph.Ref[secrets.PKIState]
	Given    *boot.PKI   // the keys of the manifest, or of a backup; nil for none
	Token    TokenSource // nil: the token that kubeadm init creates
	Restore  *Restore    // nil: a machine that runs kubeadm init begins with an empty etcd

	Group        string // name of the group of machines
	Backend      boot.Backend
	ID           string // part of the names of secrets
	Prefix       string // cloudInit.secretPrefix; "" for one made of ID
	Names        *graph.Ref[secrets.BootstrapNamesState]
	Keep         bool // machines share the secret, so none may delete it
	Waits        bool // the machine may boot before it has a route to the internet
	Uncompressed *bool
	Ignition     *infrav1.Ignition
	Bucket       *graph.Ref[s3.BucketState]
	Object       string        // key in the bucket: "control-plane/demo-abcde"
	Presigned    time.Duration // how long the link to the object works; 0: no link, the machine's role reads it
	Tags         cloud.Tags

	last atomic.Pointer[fingerprint]
}

// fingerprint is the fingerprint of kubeadm's boot data for an endpoint and keys. A wait
// asks for it every few seconds, and to render the data takes a millisecond.
type fingerprint struct {
	endpoint string
	keys     *boot.PKI
	of       string
}

// Needs implements ec2.UserData.
func (d *Data) Needs() []graph.Edge {
	names := append(graph.Exists(d.Names), d.Restore.needs()...)
	if d.EKS != nil {
		return append(names, graph.On(d.EKS.Cluster)...)
	}
	var token []graph.Edge
	if d.Token != nil {
		token = d.Token.Needs()
	}
	return slices.Concat(names, d.Endpoint.Needs(), graph.Awaits(d.PKI), token, graph.On(d.Bucket))
}

// StoredAs implements ec2.Storer.
func (d *Data) StoredAs() string {
	if d.Plain != nil {
		return ""
	}
	switch d.Backend {
	case boot.SecretsManager:
		return secrets.BootstrapSecretsKind
	case boot.ParameterStore:
		return secrets.BootstrapParametersKind
	case boot.ObjectStore:
		return s3.BucketKind
	case boot.UserData:
	}
	return ""
}

// Prepare implements ec2.UserData. It renders the data, stores it where the machine
// finds it, and returns the user data that leads there. Machines with the same data
// share one call.
func (d *Data) Prepare(ctx context.Context, c *cloud.Clients) ([]byte, error) {
	if d.Plain != nil {
		return d.Plain, nil
	}
	return cloud.Batch(ctx, c, "bootstrap data "+d.ID, struct{}{}, func(ctx context.Context, all []struct{}) ([][]byte, error) {
		data, err := d.deliverNow(ctx, c)
		out := make([][]byte, len(all))
		for i := range out {
			out[i] = data
		}
		return out, err
	})
}

// deliverNow delivers the data with a token that is valid while a machine boots.
func (d *Data) deliverNow(ctx context.Context, c *cloud.Clients) (data []byte, err error) {
	var token string
	if d.Token != nil {
		if token, err = d.Token.Current(ctx, c); err != nil {
			return nil, fmt.Errorf("join token: %w", err)
		}
	}
	return d.Deliver(ctx, c, token)
}

// anyToken replaces the token in fingerprints: another token is no reason to
// replace machines that have joined.
const anyToken = "000000.0000000000000000"

// Fingerprint implements ec2.UserData. It does not depend on the token, nor on how
// the data is delivered; it is graph.Unknown while the data cannot be rendered.
func (d *Data) Fingerprint() string {
	if d.Plain != nil {
		return boot.Data{Content: d.Plain}.Fingerprint()
	}
	if d.EKS != nil || d.Restore != nil {
		return d.fingerprint()
	}
	keys, _ := d.PKI.Found()
	now := &fingerprint{endpoint: d.Endpoint.String(), keys: keys.PKI}
	if last := d.last.Load(); last != nil && last.endpoint == now.endpoint && last.keys == now.keys {
		return last.of
	}
	now.of = d.fingerprint()
	d.last.Store(now)
	return now.of
}

func (d *Data) fingerprint() string {
	data, known, err := d.render(anyToken, "")
	switch {
	case err != nil:
		return err.Error() // Prepare returns the error
	case !known:
		return plan.Unknown
	}
	return data.Fingerprint()
}

// render renders the data, with the token or, if that is "", the cluster's own, and with the link to
// the snapshot of etcd; known is false while its contents are not known.
func (d *Data) render(token, link string) (data boot.Data, known bool, err error) {
	if d.EKS != nil {
		return d.EKS.render()
	}
	m := d.Machine
	keys, ok := d.PKI.Found()
	if m.Endpoint = d.Endpoint.String(); !ok || keys.PKI == nil || m.Endpoint == plan.Unknown {
		return data, false, nil
	}
	m.PKI, m.Token = keys.PKI, cmp.Or(token, keys.Token)
	if d.Restore != nil {
		if m.Restore, err = d.Restore.of(keys.PKI, link); err != nil {
			return data, false, err
		}
	}
	data, err = boot.Render(m)
	return data, true, err
}

// Deliver renders the data with the token, as render does, and stores it where the
// machine finds it.
func (d *Data) Deliver(ctx context.Context, c *cloud.Clients, token string) ([]byte, error) {
	keys, ok := d.PKI.Found()
	if d.EKS == nil && (!ok || keys.PKI == nil) {
		return nil, fmt.Errorf(
			"the keys that the cluster was made with are not in this account: add its Secrets %[1]s-ca, %[1]s-etcd, %[1]s-proxy and %[1]s-sa to the manifest",
			c.Cluster,
		)
	}
	if d.EKS == nil && d.Machine.JoinsByToken() && cmp.Or(token, keys.Token) == "" {
		return nil, errors.New("no token is kept with which machines join this cluster: a run with --wait=api makes one")
	}
	link, err := d.Restore.link(ctx, c)
	if err != nil {
		return nil, err
	}
	data, known, err := d.render(token, link)
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, errors.New("the endpoint of the API server is not known")
	}
	switch d.Backend {
	case boot.SecretsManager, boot.ParameterStore:
		return d.secret(ctx, c, data)
	case boot.ObjectStore:
		return d.object(ctx, c, data)
	case boot.UserData:
	}
	return boot.Fit(data.Format, data.Content, d.Uncompressed)
}

// secret keeps the data in Secrets Manager or Parameter Store, from where the
// machine fetches it.
func (d *Data) secret(ctx context.Context, c *cloud.Clients, data boot.Data) ([]byte, error) {
	chunks, err := boot.Chunks(d.Backend, data.Content)
	if err != nil {
		return nil, err
	}
	prefix := boot.Prefix(d.Backend, d.Prefix, d.ID)
	for i, chunk := range chunks {
		name := boot.ChunkName(d.Backend, prefix, i)
		if d.Backend == boot.ParameterStore {
			err = d.putParameter(ctx, c, name, string(chunk))
		} else {
			err = d.putSecret(ctx, c, name, chunk)
		}
		if err != nil {
			return nil, err
		}
	}
	probe, err := d.probe(ctx, c.Region)
	if err != nil {
		return nil, err
	}
	hook, err := boot.Boothook(boot.Fetch{Backend: d.Backend, Prefix: prefix, Chunks: len(chunks), Region: c.Region, Keep: d.Keep, Probe: probe})
	if err != nil {
		return nil, err
	}
	return boot.Fit(boot.CloudConfig, hook, d.Uncompressed)
}

// probe returns the host and port from which the machine fetches its data, if it has to
// wait for a connection.
func (d *Data) probe(ctx context.Context, region string) (string, error) {
	if !d.Waits {
		return "", nil
	}
	if d.Backend == boot.ParameterStore {
		e, err := ssm.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, ssm.EndpointParameters{Region: &region})
		return e.URI.Hostname() + ":443", err
	}
	e, err := secretsmanager.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, secretsmanager.EndpointParameters{Region: &region})
	return e.URI.Hostname() + ":443", err
}

func (d *Data) putSecret(ctx context.Context, c *cloud.Clients, name string, chunk []byte) error {
	var tags []secretstypes.Tag
	for k, v := range d.Tags {
		tags = append(tags, secretstypes.Tag{Key: aws.String(k), Value: aws.String(v)})
	}
	_, err := c.Secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: &name, SecretBinary: chunk, Tags: tags})
	switch {
	case cloud.Is(err, "InvalidRequestException"):
		return graph.NotYet(err) // one of that name is still being deleted
	case !cloud.Is(err, "ResourceExistsException"):
		return err
	}
	_, err = c.Secrets.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: &name, SecretBinary: chunk})
	return err
}

func (d *Data) putParameter(ctx context.Context, c *cloud.Clients, name, value string) error {
	var tags []ssmtypes.Tag
	for k, v := range d.Tags {
		tags = append(tags, ssmtypes.Tag{Key: aws.String(k), Value: aws.String(v)})
	}
	in := &ssm.PutParameterInput{Name: &name, Value: &value, Type: ssmtypes.ParameterTypeSecureString, Overwrite: aws.Bool(false), Tags: tags}
	_, err := c.SSM.PutParameter(ctx, in)
	if !cloud.Is(err, "ParameterAlreadyExists") {
		return err
	}
	in.Overwrite, in.Tags = aws.Bool(true), nil // AWS takes tags only with a new parameter
	_, err = c.SSM.PutParameter(ctx, in)
	return err
}

// object keeps the data in the cluster's bucket, from where Ignition loads it.
func (d *Data) object(ctx context.Context, c *cloud.Clients, data boot.Data) ([]byte, error) {
	bucket := d.Bucket.CloudID()
	_, err := c.S3.PutObject(ctx, &awss3.PutObjectInput{
		Bucket: &bucket, Key: &d.Object, Body: bytes.NewReader(data.Content), ServerSideEncryption: s3types.ServerSideEncryptionAwsKms,
	})
	if err != nil {
		return nil, err
	}
	source := fmt.Sprintf("s3://%s/%s", bucket, d.Object)
	if d.Presigned > 0 {
		link, err := awss3.NewPresignClient(c.S3).PresignGetObject(ctx, &awss3.GetObjectInput{Bucket: &bucket, Key: &d.Object}, awss3.WithPresignExpires(d.Presigned))
		if err != nil {
			return nil, err
		}
		source = link.URL
	}
	pointer, err := boot.IgnitionPointer(d.Ignition, source)
	if err != nil {
		return nil, err
	}
	return boot.Fit(boot.Ignition, pointer, d.Uncompressed)
}

// SecretID returns the ID of the secrets of a machine or group: the same for
// the same words, in the form of a UUID, as CAPA's are.
func SecretID(words ...string) string {
	h := sha256.New()
	for _, w := range words {
		h.Write([]byte(w))
		h.Write([]byte{0})
	}
	x := hex.EncodeToString(h.Sum(nil))
	return fmt.Sprintf("%s-%s-%s-%s-%s", x[:8], x[8:12], x[12:16], x[16:20], x[20:32])
}
