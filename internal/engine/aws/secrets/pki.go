package secrets

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// PKI is the cluster's keys and the token with which machines join, kept in
// SSM Parameter Store where node roles cannot read them. Each is written only
// once: whoever comes first wins.
type PKI struct {
	Algorithm    string // clusterConfiguration.encryptionAlgorithm
	Days         int32  // clusterConfiguration.caCertificateValidityPeriodDays
	FromManifest *boot.PKI
	Used         bool // machines have been made with the keys, which therefore cannot be made anew
}

// PKIState is the keys as they are kept.
type PKIState struct {
	Path  string
	Names []string // what is there: "ca.crt", …, "token"
	PKI   *boot.PKI
	Token string
}

// CloudID implements graph.State.
func (s PKIState) CloudID() string { return s.Path }

var _ graph.Managed[PKIState] = (*PKI)(nil)

// TokenName names the bootstrap token among the keys.
const TokenName = "token"

// names lists what there has to be. A cluster that lives may have no token of
// ours: one that it does not know is worse than none, and JoinToken makes both
// know one.
func (p *PKI) names() []string {
	names := []string{"ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.key", "sa.pub"}
	if !p.Used {
		names = append(names, TokenName)
	}
	if p.FromManifest != nil && len(p.FromManifest.EtcdClient.Cert) > 0 { // an external etcd has its own authority
		return append(names, "apiserver-etcd-client.crt", "apiserver-etcd-client.key", "etcd-ca.crt")
	}
	return append(names, "etcd-ca.crt", "etcd-ca.key")
}

// Needs implements graph.Desired.
func (p *PKI) Needs() []graph.Edge { return nil }

// Find implements graph.Desired.
func (p *PKI) Find(ctx context.Context, c *cloud.Clients) (*PKIState, error) {
	kept, err := PKIParameters(ctx, c)
	if err == nil && len(kept.Parts) == 0 && p.Used && !p.completeInManifest() && !cloud.IsBrief(ctx) {
		return &PKIState{Path: KeysNotStored}, nil
	}
	if err != nil || len(kept.Parts) == 0 {
		return nil, err
	}
	s := &PKIState{Path: c.ParameterPath("pki"), Names: slices.Sorted(maps.Keys(kept.Parts)), Token: string(kept.Parts[TokenName])}
	if len(s.missing(p)) == 0 {
		s.PKI, err = boot.ParsePKI(kept.Parts)
	}
	return s, err
}

// KeysNotStored stands for where the keys are of a cluster that Cluster API made:
// in its management cluster. Its machines live on; none can be added.
const KeysNotStored = "kept elsewhere"

// completeInManifest reports whether the manifest brings all that there has to be.
func (p *PKI) completeInManifest() bool {
	whole := func(k boot.KeyPair) bool { return len(k.Cert) > 0 && len(k.Key) > 0 }
	return p.FromManifest != nil && whole(p.FromManifest.CA) && whole(p.FromManifest.FrontProxy) && whole(p.FromManifest.ServiceAccount) &&
		(whole(p.FromManifest.Etcd) || len(p.FromManifest.EtcdClient.Cert) > 0)
}

func (s *PKIState) missing(p *PKI) []string {
	return slices.DeleteFunc(p.names(), func(n string) bool { return slices.Contains(s.Names, n) })
}

// Diff implements graph.Desired. Names are all it shows.
func (p *PKI) Diff(have *PKIState) (d graph.Diff) {
	if have.Path == KeysNotStored {
		return nil
	}
	for _, n := range have.missing(p) {
		switch {
		case p.Used && p.completeInManifest():
			d.Set(n, "", "as in the manifest")
		case p.Used:
			d.Fixed(n, "", "as it was")
		default:
			d.Set(n, "", "generated")
		}
	}
	return d
}

// Create implements graph.Creator.
func (p *PKI) Create(ctx context.Context, c *cloud.Clients) (*PKIState, error) {
	return p.Update(ctx, c, &PKIState{}, nil)
}

// Update implements graph.Updater. Parts are missing only when a run died
// while it wrote them: no machine has seen them yet, so all are made anew. Those
// that the manifest gives for machines that live are added to what is there.
func (p *PKI) Update(ctx context.Context, c *cloud.Clients, have *PKIState, _ graph.Diff) (*PKIState, error) {
	keys := &boot.PKI{}
	if p.FromManifest != nil {
		*keys = *p.FromManifest
	}
	if err := keys.Complete(p.Algorithm, p.Days, c.Clock.Now()); err != nil {
		return nil, err
	}
	parts, token := keys.Marshal(), ""
	if !p.Used {
		var err error
		if token, err = boot.NewToken(rand.Reader); err != nil {
			return nil, err
		}
		parts[TokenName] = []byte(token)
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if p.Used && slices.Contains(have.Names, name) {
			continue
		}
		_, err := c.SSM.PutParameter(ctx, &ssm.PutParameterInput{
			Name: aws.String(c.ParameterPath("pki", name)), Value: aws.String(string(parts[name])),
			Type: types.ParameterTypeSecureString, Overwrite: aws.Bool(len(have.Names) > 0),
		})
		if err != nil {
			return nil, err
		}
	}
	if len(have.Names) > 0 && p.Used {
		return nil, nil // look again: some were there
	}
	return &PKIState{c.ParameterPath("pki"), slices.Sorted(maps.Keys(parts)), keys, token}, nil
}

// Delete implements graph.Deleter.
func (p *PKI) Delete(ctx context.Context, c *cloud.Clients, have *PKIState) error {
	var names []string
	for _, n := range have.Names {
		names = append(names, c.ParameterPath("pki", n))
	}
	for part := range slices.Chunk(names, 10) {
		if _, err := c.SSM.DeleteParameters(ctx, &ssm.DeleteParametersInput{Names: part}); err != nil {
			return err
		}
	}
	return nil
}

// StoredKeys are the keys that the account keeps, by name.
type StoredKeys struct {
	Parts        map[string][]byte
	TokenCreated time.Time
}

// PKIParameters reads what is kept.
func PKIParameters(ctx context.Context, c *cloud.Clients) (*StoredKeys, error) {
	return cloud.Remember(ctx, c, "keys", func(ctx context.Context) (*StoredKeys, error) {
		kept := &StoredKeys{Parts: map[string][]byte{}}
		path := c.ParameterPath("pki")
		for p := ssm.NewGetParametersByPathPaginator(c.SSM, &ssm.GetParametersByPathInput{Path: &path, WithDecryption: aws.Bool(true)}); p.HasMorePages(); {
			page, err := p.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			for _, x := range page.Parameters {
				name := cloud.LastPart(aws.ToString(x.Name))
				if kept.Parts[name] = []byte(aws.ToString(x.Value)); name == TokenName {
					kept.TokenCreated = aws.ToTime(x.LastModifiedDate)
				}
			}
		}
		return kept, nil
	})
}

// StoredPKI returns the keys of the cluster, or nil when the account has none.
func StoredPKI(ctx context.Context, c *cloud.Clients) (*boot.PKI, error) {
	kept, err := PKIParameters(ctx, c)
	if err != nil || len(kept.Parts) == 0 {
		return nil, err
	}
	return boot.ParsePKI(kept.Parts)
}

// findStored finds the keys, whole or not.
func (p *PKI) findStored(ctx context.Context, c *cloud.Clients) (*PKIState, error) {
	kept, err := PKIParameters(ctx, c)
	if err != nil || len(kept.Parts) == 0 {
		return nil, err
	}
	s := &PKIState{Path: c.ParameterPath("pki")}
	for name := range kept.Parts {
		s.Names = append(s.Names, name)
	}
	return s, nil
}

// TokenCreated returns when the token was made with which machines join; the zero
// time when there is none.
func TokenCreated(ctx context.Context, c *cloud.Clients) (time.Time, error) {
	out, err := c.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(c.ParameterPath("pki", TokenName))})
	if cloud.NotFound(err) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return aws.ToTime(out.Parameter.LastModifiedDate), nil
}

// pkiKind declares the keys of clusters.
func pkiKind() *kind.Any {
	return kind.Of(kind.Kind[PKIState]{
		Name: "certificates", Area: kind.AreaSecurity, Secret: true, Single: true, List: listStored, Delete: &PKI{},
		Find: func(ctx context.Context, c *cloud.Clients, _ PKIState) (*PKIState, error) {
			return (&PKI{}).findStored(ctx, c)
		},
		Statement: kind.Parameters,
		Actions:   []string{"ssm:AddTagsToResource", "ssm:DeleteParameter", "ssm:DeleteParameters", "ssm:GetParameter", "ssm:GetParametersByPath", "ssm:PutParameter"},
	})
}

// listStored lists the keys that the account keeps, whole or not.
func listStored(ctx context.Context, c *cloud.Clients, _ kind.Owner) ([]PKIState, error) {
	keys, err := PKIParameters(ctx, c)
	if err != nil || len(keys.Parts) == 0 {
		return nil, err
	}
	return []PKIState{{Path: c.ParameterPath("pki")}}, nil
}
