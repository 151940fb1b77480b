package secrets

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// PKI is the certificates and keys of the cluster and its bootstrap token, in SSM
// parameters that node roles cannot read. Parameters are not overwritten, so that of two
// concurrent runs the first one determines the value. A certificate and its key share a
// parameter: Parameter Store accepts few writes in a second, from all runs of an account.
type PKI struct {
	Algorithm    string // clusterConfiguration.encryptionAlgorithm
	Days         int32  // clusterConfiguration.caCertificateValidityPeriodDays
	FromManifest *boot.PKI
	Used         bool // machines use the keys, so they cannot be generated again
	Stored       bool // a run has launched machines with the keys, so they were stored
}

// PKIState is the stored keys.
type PKIState struct {
	Path       string
	Names      []string // of the parts that exist: "ca.crt", …, "token"
	Parameters []string // that hold them: "ca", …, "token"
	PKI        *boot.PKI
	Token      string
}

// CloudID implements graph.State.
func (s PKIState) CloudID() string { return s.Path }

var _ graph.Managed[PKIState] = (*PKI)(nil)

// PKIKind is the name of the kind of the stored keys.
const PKIKind = "certificates"

// TokenName is the name of the parameter with the bootstrap token.
const TokenName = "token"

// names lists the required parameters. For a cluster with machines this does not include
// the token: the cluster would not know a new one, and incluster.JoinToken creates it in
// both places.
func (p *PKI) names() []string {
	names := []string{"ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.key", "sa.pub"}
	if !p.Used {
		names = append(names, TokenName)
	}
	if p.FromManifest != nil && len(p.FromManifest.EtcdClient.Cert) > 0 { // an external etcd has its own certificate authority
		return append(names, "apiserver-etcd-client.crt", "apiserver-etcd-client.key", "etcd-ca.crt")
	}
	return append(names, "etcd-ca.crt", "etcd-ca.key")
}

// Needs implements graph.Desired.
func (p *PKI) Needs() []graph.Edge { return nil }

// Find implements graph.Desired.
func (p *PKI) Find(ctx context.Context, c *cloud.Clients) (*PKIState, error) {
	s, err := p.Identify(ctx, c, nil)
	switch {
	case err != nil || s != nil || !p.Used || p.completeInManifest():
		return s, err
	case p.Stored:
		return &PKIState{Path: c.ParameterPath("pki")}, nil
	}
	return &PKIState{Path: KeysNotStored}, nil
}

// Identify implements graph.Identified.
func (p *PKI) Identify(ctx context.Context, c *cloud.Clients, _ *PKIState) (*PKIState, error) {
	stored, err := undamaged(ctx, c)
	if stored == nil || err != nil {
		return nil, err
	}
	s := stored.state(c)
	if len(s.missing(p)) == 0 {
		s.PKI, err = boot.ParsePKI(stored.Parts)
	}
	return s, err
}

// KeysNotStored is the path of the keys of an adopted cluster, which are in its
// management cluster. Machines cannot be added to such a cluster.
const KeysNotStored = "in the management cluster"

// completeInManifest reports whether the manifest contains all required keys.
func (p *PKI) completeInManifest() bool {
	whole := func(k boot.KeyPair) bool { return len(k.Cert) > 0 && len(k.Key) > 0 }
	return p.FromManifest != nil && whole(p.FromManifest.CA) && whole(p.FromManifest.FrontProxy) && whole(p.FromManifest.ServiceAccount) &&
		(whole(p.FromManifest.Etcd) || len(p.FromManifest.EtcdClient.Cert) > 0)
}

func (s *PKIState) missing(p *PKI) []string {
	return slices.DeleteFunc(p.names(), func(n string) bool { return slices.Contains(s.Names, n) })
}

// Diff implements graph.Desired. It contains only names, no keys.
func (p *PKI) Diff(have *PKIState) (d plan.Diff) {
	if have.Path == KeysNotStored {
		return nil
	}
	missing := have.missing(p)
	if p.Used && !p.completeInManifest() && len(missing) > 0 {
		d.Fixed("keys", "without "+text.Several(missing), "complete")
		d.Advise(
			"the cluster uses them; copy them from /etc/kubernetes/pki of a control-plane machine into the Secrets NAME-ca, NAME-etcd, NAME-proxy and NAME-sa of the manifest",
		)
		return d
	}
	for _, n := range missing {
		want := "generated"
		if p.Used {
			want = "as in the manifest"
		}
		d.Set(n, "", want)
	}
	return d
}

// Create implements graph.Creator.
func (p *PKI) Create(ctx context.Context, c *cloud.Clients) (*PKIState, error) {
	return p.Update(ctx, c, &PKIState{}, nil)
}

// Update implements graph.Updater. Parameters are missing only if a run ended while it
// wrote them. Unless machines use the keys, all are generated again. Otherwise the
// missing ones are added from the manifest.
func (p *PKI) Update(ctx context.Context, c *cloud.Clients, have *PKIState, _ plan.Diff) (*PKIState, error) {
	keys := &boot.PKI{}
	if p.FromManifest != nil {
		*keys = *p.FromManifest
	}
	if err := keys.Complete(p.Algorithm, p.Days, c.Now()); err != nil {
		return nil, err
	}
	if p.Used && len(have.Names) > 0 {
		return nil, addMissing(ctx, c, have, keys.Marshal()) // find them again: some existed before
	}
	stored := &StoredKeys{Parts: keys.Marshal()}
	values, err := pack(stored.Parts)
	if err != nil {
		return nil, err
	}
	if !p.Used {
		token, err := boot.NewToken(rand.Reader)
		if err != nil {
			return nil, err
		}
		stored.Parts[TokenName] = []byte(token)
		values = append(values, parameter{TokenName, token}) // the last: with it, the others are complete
	}
	for _, v := range values {
		if err := c.PutSecretParameter(ctx, c.ParameterPath("pki", v.name), v.value, len(have.Names) > 0); err != nil {
			return nil, err
		}
		stored.parameters = append(stored.parameters, v.name)
	}
	s := stored.state(c)
	s.PKI = keys
	return s, nil
}

// addMissing stores the parts that are missing, each in a parameter of its name.
func addMissing(ctx context.Context, c *cloud.Clients, have *PKIState, parts map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if slices.Contains(have.Names, name) {
			continue
		}
		if err := c.PutSecretParameter(ctx, c.ParameterPath("pki", name), string(parts[name]), true); err != nil {
			return err
		}
	}
	return nil
}

// parameter is a parameter below the path of the keys.
type parameter struct{ name, value string }

// pack returns the parameters for certificates and keys. A certificate and its key are in one parameter, such as "ca": a
// JSON object with the two files. So a run that is killed cannot leave a certificate beside the key of an earlier run.
func pack(parts map[string][]byte) (out []parameter, err error) {
	pairs := map[string]map[string]string{}
	for name, part := range parts {
		pair := strings.TrimSuffix(name, path.Ext(name))
		if pairs[pair] == nil {
			pairs[pair] = map[string]string{}
		}
		pairs[pair][name] = string(part)
	}
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		if len(pairs[name]) == 1 { // the CA of an external etcd has no key here
			for part, value := range pairs[name] {
				out = append(out, parameter{part, value})
			}
			continue
		}
		value, err := json.Marshal(pairs[name])
		if err != nil {
			return nil, err
		}
		out = append(out, parameter{name, string(value)})
	}
	return out, nil
}

// unpack adds what a parameter holds. An older version, or addMissing, has written a parameter that has the name of one
// file. If a pair has that file too, that of the pair is used.
func (k *StoredKeys) unpack(name, value string) error {
	k.parameters = append(k.parameters, name)
	if name == TokenName || path.Ext(name) != "" {
		if _, found := k.Parts[name]; !found {
			k.Parts[name] = []byte(value)
		}
		return nil
	}
	pair := map[string]string{}
	if err := json.Unmarshal([]byte(value), &pair); err != nil {
		return errors.New("it is no JSON object with a certificate and a key") // without the value
	}
	for part, text := range pair {
		k.Parts[part] = []byte(text)
	}
	return nil
}

// Delete implements graph.Deleter.
func (p *PKI) Delete(ctx context.Context, c *cloud.Clients, have *PKIState) error {
	var names []string
	for _, n := range have.Parameters {
		names = append(names, c.ParameterPath("pki", n))
	}
	for part := range slices.Chunk(names, 10) {
		if _, err := c.SSM.DeleteParameters(ctx, &ssm.DeleteParametersInput{Names: part}); err != nil {
			return err
		}
	}
	return nil
}

// StoredKeys are the stored keys.
type StoredKeys struct {
	Parts        map[string][]byte
	TokenCreated time.Time

	parameters []string
	damaged    error // about a parameter that cannot be read
}

// state returns the state of the keys, not parsed.
func (k *StoredKeys) state(c *cloud.Clients) *PKIState {
	return &PKIState{
		Path: c.ParameterPath("pki"), Names: slices.Sorted(maps.Keys(k.Parts)), Parameters: slices.Sorted(slices.Values(k.parameters)),
		Token: string(k.Parts[TokenName]),
	}
}

// PKIParameters reads the stored keys.
func PKIParameters(ctx context.Context, c *cloud.Clients) (*StoredKeys, error) {
	return cloud.Remember(ctx, c, "keys", func(ctx context.Context) (*StoredKeys, error) {
		stored := &StoredKeys{Parts: map[string][]byte{}}
		in := &ssm.GetParametersByPathInput{Path: aws.String(c.ParameterPath("pki")), WithDecryption: aws.Bool(true)}
		ctx = cloud.Listing(ctx)
		for p := ssm.NewGetParametersByPathPaginator(c.SSM, in); p.HasMorePages(); {
			page, err := p.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			for _, x := range page.Parameters {
				name := cloud.LastPart(aws.ToString(x.Name))
				if err := stored.unpack(name, aws.ToString(x.Value)); err != nil {
					stored.damaged = fmt.Errorf("parameter %s: %w", aws.ToString(x.Name), err)
				}
				if name == TokenName {
					stored.TokenCreated = aws.ToTime(x.LastModifiedDate)
				}
			}
		}
		return stored, nil
	})
}

// undamaged returns the stored keys; nil if there are none, and an error if the content of one of their parameters cannot be read.
func undamaged(ctx context.Context, c *cloud.Clients) (*StoredKeys, error) {
	stored, err := PKIParameters(ctx, c)
	if err != nil || len(stored.parameters) == 0 {
		return nil, err
	}
	return stored, stored.damaged
}

// StoredPKI returns the stored keys of the cluster, or nil if there are none.
func StoredPKI(ctx context.Context, c *cloud.Clients) (*boot.PKI, error) {
	stored, err := undamaged(ctx, c)
	if stored == nil || err != nil {
		return nil, err
	}
	return boot.ParsePKI(stored.Parts)
}

// findStored returns the names of the stored keys, complete or not, or nil.
func (p *PKI) findStored(ctx context.Context, c *cloud.Clients) (*PKIState, error) {
	stored, err := PKIParameters(ctx, c)
	if err != nil || len(stored.parameters) == 0 {
		return nil, err
	}
	return stored.state(c), nil
}

// pkiKind declares the certificates and keys.
func pkiKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name:        PKIKind,
		Area:        plan.AreaSecurity,
		Secret:      true,
		Single:      true,
		ReadActions: []string{"ssm:DescribeParameters"}, // with --kms-key
		Statement:   kind.Parameters,
		Actions: []string{
			"ssm:AddTagsToResource",
			"ssm:DeleteParameter",
			"ssm:DeleteParameters",
			"ssm:GetParameter",
			"ssm:GetParametersByPath",
			"ssm:PutParameter",
		},
	}, kind.Functions[PKIState]{
		List: listStored, Delete: &PKI{},
		Find: func(ctx context.Context, c *cloud.Clients, _ PKIState) (*PKIState, error) {
			return (&PKI{}).findStored(ctx, c)
		},
	})
}

// listStored lists the stored keys, complete or not.
func listStored(ctx context.Context, c *cloud.Clients, _ kind.Owner) ([]PKIState, error) {
	keys, err := PKIParameters(ctx, c)
	if err != nil || len(keys.parameters) == 0 {
		return nil, err
	}
	return []PKIState{{Path: c.ParameterPath("pki")}}, nil
}

// OtherKey returns the KMS key that encrypts the keys of the cluster, as it was named when they were stored, if it is
// another one than the given key; otherwise "".
func OtherKey(ctx context.Context, c *cloud.Clients, key string) (string, error) {
	p := ssm.NewDescribeParametersPaginator(c.SSM, &ssm.DescribeParametersInput{ParameterFilters: []types.ParameterStringFilter{
		{Key: aws.String("Path"), Option: aws.String("Recursive"), Values: []string{c.ParameterPath("pki")}},
	}})
	all, err := cloud.Pages(ctx, p, func(o *ssm.DescribeParametersOutput) []types.ParameterMetadata { return o.Parameters })
	for _, x := range all {
		// A key has an ID, an ARN that ends with it, and aliases: those of two forms are not compared.
		if have := aws.ToString(
			x.KeyId,
		); x.Type == types.ParameterTypeSecureString && have != key && !strings.HasSuffix(have, "/"+key) &&
			!strings.HasSuffix(key, "/"+have) {
			return have, err
		}
	}
	return "", err
}
