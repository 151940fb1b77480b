package incluster

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

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
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
	Shared []*bootdata.Data
	After  []graph.Edge // what Shared needs
	// Inline says that a launch template holds the token itself: its value stays,
	// for another version of the template would replace all machines.
	Inline bool
}

// JoinTokenState is the token as the account keeps it, and as the cluster does.
type JoinTokenState struct {
	Token  string    // a secret
	Until  time.Time // when it expires, at the earliest
	Silent string    // why the API server could not be asked; "" unless it had to be
	Status string    // "valid", or why it has to be made anew
	Others []string
}

// CloudID implements graph.State: the name of the Secret, which holds the half
// of the token that is no secret.
func (s JoinTokenState) CloudID() string {
	if s.Token == "" {
		return "none"
	}
	id, _, _ := strings.Cut(s.Token, ".")
	return tokenSecretPrefix + id
}

const (
	tokenSecretPrefix = "bootstrap-token-"
	tokenSecrets      = "/api/v1/namespaces/kube-system/secrets" //nolint:gosec // a path
	valid             = "valid"
	expired           = "expired"
	never             = "never made" // of a cluster that was not begun here
)

var (
	_ graph.Desired[JoinTokenState] = (*JoinToken)(nil)
	_ graph.Updater[JoinTokenState] = (*JoinToken)(nil)
	_ graph.TimeLimited             = (*JoinToken)(nil)
)

// Needs implements graph.Desired.
func (j *JoinToken) Needs() []graph.Edge { return append(j.API.needs(), j.After...) }

// TimeLimit implements graph.TimeLimited: what this run mends may be what keeps the
// API server from answering.
func (j *JoinToken) TimeLimit() time.Duration { return 10 * time.Minute }

// Find implements graph.Desired. A token that was made lately is valid: the
// cluster, which may not even be up, is not asked.
func (j *JoinToken) Find(ctx context.Context, c *cloud.Clients) (*JoinTokenState, error) {
	if cloud.IsBrief(ctx) {
		return nil, nil // it goes with the cluster
	}
	kept, err := secrets.PKIParameters(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &JoinTokenState{Token: string(kept.Parts[secrets.TokenName]), Status: valid}
	age := c.Clock.Since(kept.TokenMade)
	if s.Token != "" && age < j.TTL-j.Least {
		s.Until = kept.TokenMade.Add(j.TTL)
		return s, nil
	}
	k, err := j.API.Client(c)
	switch {
	case err != nil:
		return nil, err
	case k == nil && s.Token == "":
		s.Status = never // the keys are made first
		return s, nil
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
	j.among(s, all, age, c.Clock.Now())
	return s, nil
}

// among notes how the token is among those that the cluster knows.
func (j *JoinToken) among(s *JoinTokenState, all []tokenSecret, age time.Duration, now time.Time) {
	if s.Status = expired; s.Token == "" {
		s.Status = never
	}
	for _, t := range all {
		switch {
		case t.Metadata.Name == s.CloudID():
			s.Status = j.status(t, s.Token, age, now)
			s.Until = t.expires()
		case string(t.Data["description"]) == boot.TokenDescription:
			s.Others = append(s.Others, t.Metadata.Name)
		}
	}
}

// status says whether a token that is there will do.
func (j *JoinToken) status(t tokenSecret, token string, age time.Duration, now time.Time) string {
	switch left := t.expires().Sub(now); {
	case !t.is(token):
		return "another one"
	case left <= 0:
		return expired
	case left < j.Least:
		return "about to expire"
	case age > j.Most && !j.Inline:
		return fmt.Sprintf("%d days old", int(age.Hours()/24))
	}
	return valid
}

// Diff implements graph.Desired.
func (j *JoinToken) Diff(have *JoinTokenState) (d graph.Diff) {
	if have.Silent != "" {
		d.Await("API server", "unreachable: "+have.Silent, "reachable (no machine that is added could join)")
		return d
	}
	d.Set("state", have.Status, valid)
	d.Set("superseded", strings.Join(have.Others, ", "), "")
	return d
}

// Update implements graph.Updater. The order is such that whoever reads a
// token reads one that the cluster knows, and that a run that dies leaves one
// that is not the cluster's, or is as wanted. Tokens of before stay valid for
// those who have just read them, and are kept alive no longer.
func (j *JoinToken) Update(ctx context.Context, c *cloud.Clients, have *JoinTokenState, d graph.Diff) (*JoinTokenState, error) {
	k, err := j.client(c)
	if err != nil {
		return nil, err
	}
	after, before := *have, have.Others
	if d.Has("state") {
		if after.Token, after.Until, err = j.renew(ctx, c, k, have.Token); err != nil {
			return nil, err
		}
		if after.Status = valid; have.Status != expired && have.Token != "" && after.Token != have.Token {
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

// client returns a client of an API server whose address is known.
func (j *JoinToken) client(c *cloud.Clients) (*kube.Client, error) {
	k, err := j.API.Client(c)
	if err == nil && k == nil {
		err = graph.NotYet(errors.New("the address of the API server to be known"))
	}
	return k, err
}

// renew creates a token, or makes the one that was valid again. It returns until
// when it is valid.
func (j *JoinToken) renew(ctx context.Context, c *cloud.Clients, k *kube.Client, token string) (string, time.Time, error) {
	again, until := j.Inline && token != "", c.Clock.Now().Add(j.TTL)
	if !again {
		var err error
		if token, err = boot.NewToken(rand.Reader); err != nil {
			return "", until, err
		}
	}
	secret, err := boot.TokenSecret(token, until)
	if err != nil {
		return "", until, err
	}
	if err = k.Post(ctx, tokenSecrets, secret); again && apierrors.IsAlreadyExists(err) {
		err = patchToken(ctx, k, secret.Name, secret.StringData)
	}
	if err != nil {
		return "", until, patiently(ctx, err)
	}
	if !again {
		err = j.keep(ctx, c, token)
	}
	return token, until, err
}

// keep has pools and the account know a token that the cluster knows.
func (j *JoinToken) keep(ctx context.Context, c *cloud.Clients, token string) error {
	for _, data := range j.Shared {
		if _, err := data.Deliver(ctx, c, token); err != nil {
			return fmt.Errorf("bootstrap data: %w", err)
		}
	}
	_, err := c.SSM.PutParameter(ctx, &ssm.PutParameterInput{
		Name: aws.String(c.ParameterPath("pki", secrets.TokenName)), Value: &token, Type: types.ParameterTypeSecureString, Overwrite: aws.Bool(true),
	})
	return err
}

// CurrentToken hands out the join token to machines that are launched.
type CurrentToken struct {
	Ref   *graph.Ref[JoinTokenState]
	Token *JoinToken
}

// Needs implements bootdata.TokenSource.
func (t *CurrentToken) Needs() []graph.Edge { return graph.Awaits(t.Ref) }

// Current implements bootdata.TokenSource. It asks the API server only when the
// token that the run knows is about to expire.
func (t *CurrentToken) Current(ctx context.Context, c *cloud.Clients) (string, error) {
	have, _ := t.Ref.Found()
	if have.Until.Sub(c.Clock.Now()) >= t.Token.Least {
		return have.Token, nil
	}
	return cloud.RememberUntil(ctx, c, "join token", func(ctx context.Context) (string, time.Time, error) {
		token, until, err := t.Token.prolong(ctx, c)
		return token, until.Add(-t.Token.Least), err
	})
}

// prolong makes the token that the account keeps valid for its whole time again,
// unless it is valid long enough: the control plane may keep it so. A token that
// the cluster does not know, because it has expired or somebody has deleted it, is
// replaced by another.
func (j *JoinToken) prolong(ctx context.Context, c *cloud.Clients) (token string, until time.Time, err error) {
	kept, err := secrets.PKIParameters(ctx, c)
	if err != nil {
		return "", until, err
	}
	token = string(kept.Parts[secrets.TokenName])
	k, err := j.client(c)
	if err != nil {
		return "", until, err
	}
	all, err := joinTokens(ctx, c, k)
	if err != nil {
		return "", until, patiently(ctx, err)
	}
	now := c.Clock.Now()
	for _, t := range all {
		left := t.expires().Sub(now)
		switch {
		case !t.is(token) || left <= 0:
			continue
		case left >= j.Least:
			return token, t.expires(), nil
		}
		until = now.Add(j.TTL)
		err = patchToken(ctx, k, t.Metadata.Name, map[string]string{"expiration": until.UTC().Format(time.RFC3339)})
		if apierrors.IsNotFound(err) {
			break // it expired just now
		}
		return token, until, patiently(ctx, err)
	}
	return j.renew(ctx, c, k, token)
}

func patchToken(ctx context.Context, k *kube.Client, name string, data map[string]string) error {
	change, err := json.Marshal(map[string]any{"stringData": data})
	if err != nil {
		return err
	}
	_, err = k.Objects(kube.Core("secrets"), metav1.NamespaceSystem).Patch(ctx, name, apitypes.MergePatchType, change, metav1.PatchOptions{FieldManager: kube.FieldManager})
	return err
}

// tokenSecret is what matters here of a Secret.
type tokenSecret struct {
	Metadata struct{ Name string }
	Data     map[string][]byte
}

// is reports whether machines can join with a token by the Secret.
func (t tokenSecret) is(token string) bool {
	id, secret, _ := strings.Cut(token, ".")
	return t.Metadata.Name == tokenSecretPrefix+id && string(t.Data["token-secret"]) == secret && string(t.Data["usage-bootstrap-authentication"]) == "true"
}

// expires returns when the token expires: long from now, where it never does;
// one of which nobody can read when has.
func (t tokenSecret) expires() time.Time {
	text := string(t.Data["expiration"])
	if text == "" {
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	at, _ := time.Parse(time.RFC3339, text) // the zero time is over
	return at
}

// joinTokens lists the bootstrap tokens of the cluster.
func joinTokens(ctx context.Context, c *cloud.Clients, k *kube.Client) ([]tokenSecret, error) {
	return cloud.Remember(ctx, c, "join tokens", func(ctx context.Context) ([]tokenSecret, error) {
		var list struct{ Items []tokenSecret }
		err := k.Get(ctx, tokenSecrets+"?fieldSelector=type=bootstrap.kubernetes.io/token", &list)
		return list.Items, err
	})
}
