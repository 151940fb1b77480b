package resource

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"clusterawsadm/internal/cloud"
	"clusterawsadm/internal/kube"
	"clusterawsadm/pkg/reconcile/boot"
	"clusterawsadm/pkg/reconcile/graph"
)

// JoinToken is the bootstrap token of a cluster that is up, with which machines
// join that are added later (docs/adr/0018-join-token.md).
type JoinToken struct {
	API   *API
	TTL   time.Duration // of a token that is made
	Least time.Duration // how long it has to be valid yet
	Most  time.Duration // how old its value may be
	// Shared is what machines boot with that nobody launches but Auto Scaling: it
	// has to have the token before it is the cluster's.
	Shared []*BootData
	After  []graph.Edge // what Shared needs
	// Inline says that a launch template holds the token itself: its value stays,
	// for another version of the template would replace all machines.
	Inline bool
}

// JoinTokenState is the token as the account keeps it, and as the cluster does.
type JoinTokenState struct {
	Token  string // a secret
	Silent string // why the API server could not be asked; "" unless it had to be
	Status string // "valid", or why it has to be made anew
	Others []string
}

// CloudID implements graph.State: the name of the Secret, which holds the half
// of the token that is no secret.
func (s JoinTokenState) CloudID() string {
	id, _, _ := strings.Cut(s.Token, ".")
	return tokenSecretPrefix + id
}

const (
	tokenSecretPrefix = "bootstrap-token-"
	tokenSecrets      = "/api/v1/namespaces/kube-system/secrets" //nolint:gosec // a path
	valid             = "valid"
)

var (
	_ graph.Resource[JoinTokenState] = (*JoinToken)(nil)
	_ graph.Patient                  = (*JoinToken)(nil)
)

// Needs implements graph.Resource.
func (j *JoinToken) Needs() []graph.Edge { return append(j.API.needs(), j.After...) }

// Patience implements graph.Patient: what this run mends may be what keeps the
// API server from answering.
func (j *JoinToken) Patience() time.Duration { return 10 * time.Minute }

// Find implements graph.Resource. A token that was made lately is valid: the
// cluster, which may not even be up, is not asked.
func (j *JoinToken) Find(ctx context.Context, c *cloud.Clients) (*JoinTokenState, error) {
	if cloud.IsBrief(ctx) {
		return nil, nil //nolint:nilnil // it goes with the cluster
	}
	kept, err := keptPKI(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &JoinTokenState{Token: string(kept.parts[tokenName]), Status: valid}
	age := c.Clock.Since(kept.tokenMade)
	if s.Token == "" || age < j.TTL-j.Least {
		return s, nil
	}
	k, err := j.API.client(c)
	switch {
	case err != nil:
		return nil, err
	case k == nil:
		s.Silent = "its address is not known"
		return s, nil
	}
	all, err := joinTokens(ctx, c, k)
	var silent *unansweredError
	if err = patiently(ctx, err); errors.As(err, &silent) {
		s.Silent = silent.why
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.Status = "expired"
	for _, t := range all {
		switch {
		case t.Metadata.Name == s.CloudID():
			s.Status = j.status(t, s.Token, age, c.Clock.Now())
		case string(t.Data["description"]) == boot.TokenDescription:
			s.Others = append(s.Others, t.Metadata.Name)
		}
	}
	return s, nil
}

// status says whether a token that is there will do.
func (j *JoinToken) status(t tokenSecret, token string, age time.Duration, now time.Time) string {
	_, secret, _ := strings.Cut(token, ".")
	expires, err := time.Parse(time.RFC3339, string(t.Data["expiration"]))
	switch left := expires.Sub(now); {
	case string(t.Data["token-secret"]) != secret || string(t.Data["usage-bootstrap-authentication"]) != "true":
		return "another one"
	case err == nil && left <= 0:
		return "expired"
	case err == nil && left < j.Least:
		return "about to expire"
	case age > j.Most && !j.Inline:
		return fmt.Sprintf("%d days old", int(age.Hours()/24))
	}
	return valid
}

// Diff implements graph.Resource.
func (j *JoinToken) Diff(have *JoinTokenState) (d graph.Diff) {
	if have.Silent != "" {
		d.Await("API server", "unreachable: "+have.Silent, "reachable (no machine that is added could join)")
		return d
	}
	d.Set("state", have.Status, valid)
	d.Set("superseded", strings.Join(have.Others, ", "), "")
	return d
}

// Create implements graph.Resource.
func (j *JoinToken) Create(context.Context, *cloud.Clients) (*JoinTokenState, error) {
	return nil, nil //nolint:nilnil // kubeadm init makes the first one
}

// Update implements graph.Resource. The order is such that whoever reads a
// token reads one that the cluster knows, and that a run that dies leaves one
// that is not the cluster's, or is as wanted. Tokens of before stay valid for
// those who have just read them, and are kept alive no longer.
func (j *JoinToken) Update(ctx context.Context, c *cloud.Clients, have *JoinTokenState, d graph.Diff) (*JoinTokenState, error) {
	k, err := j.API.client(c)
	if err != nil {
		return nil, err
	}
	after, before := *have, have.Others
	if d.Has("state") {
		if after.Token, err = j.renew(ctx, c, k, have.Token); err != nil {
			return nil, err
		}
		if after.Status = valid; have.Status != "expired" && after.Token != have.Token {
			before = append(before, have.CloudID())
		}
	}
	if after.Others = nil; len(before) == 0 {
		return &after, nil
	}
	for _, name := range before {
		err := patchToken(ctx, k, name, map[string]string{
			"description": "superseded: " + boot.TokenDescription, "expiration": c.Clock.Now().Add(j.TTL).UTC().Format(time.RFC3339),
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, patiently(ctx, err)
		}
	}
	return &after, nil
}

// renew makes a token, or makes the one that was valid again.
func (j *JoinToken) renew(ctx context.Context, c *cloud.Clients, k *kube.Client, token string) (string, error) {
	if !j.Inline {
		var err error
		if token, err = boot.NewToken(rand.Reader); err != nil {
			return "", err
		}
	}
	secret, err := boot.TokenSecret(token, c.Clock.Now().Add(j.TTL))
	if err != nil {
		return "", err
	}
	if err = k.Post(ctx, tokenSecrets, secret); j.Inline && apierrors.IsAlreadyExists(err) {
		err = patchToken(ctx, k, secret.Name, secret.StringData)
	}
	if err != nil || j.Inline {
		return token, patiently(ctx, err)
	}
	for _, data := range j.Shared {
		if _, err := data.deliver(ctx, c, token); err != nil {
			return "", fmt.Errorf("bootstrap data: %w", err)
		}
	}
	_, err = c.SSM.PutParameter(ctx, &ssm.PutParameterInput{
		Name: aws.String(c.ParameterPath("pki", tokenName)), Value: &token, Type: types.ParameterTypeSecureString, Overwrite: aws.Bool(true),
	})
	return token, err
}

func patchToken(ctx context.Context, k *kube.Client, name string, data map[string]string) error {
	change, err := json.Marshal(map[string]any{"stringData": data})
	if err != nil {
		return err
	}
	_, err = k.Objects(kube.Core("secrets"), metav1.NamespaceSystem).Patch(ctx, name, apitypes.MergePatchType, change, metav1.PatchOptions{FieldManager: kube.FieldManager})
	return err
}

// Delete implements graph.Resource.
func (j *JoinToken) Delete(context.Context, *cloud.Clients, *JoinTokenState) error { return nil }

// tokenSecret is what matters here of a Secret.
type tokenSecret struct {
	Metadata struct{ Name string }
	Data     map[string][]byte
}

// joinTokens lists the bootstrap tokens of the cluster.
func joinTokens(ctx context.Context, c *cloud.Clients, k *kube.Client) ([]tokenSecret, error) {
	return cloud.Remember(ctx, c, "join tokens", func(ctx context.Context) ([]tokenSecret, error) {
		var list struct{ Items []tokenSecret }
		err := k.Get(ctx, tokenSecrets+"?fieldSelector=type=bootstrap.kubernetes.io/token", &list)
		return list.Items, err
	})
}
