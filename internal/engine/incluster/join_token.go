package incluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// JoinTokenKind is the kind of JoinToken.
const JoinTokenKind = "join-token"

// JoinToken is the bootstrap token with which machines join a cluster that exists
// already (docs/adr/0018-join-token.md).
type JoinToken struct {
	API   *API
	TTL   time.Duration // time to live of a new token
	Least time.Duration // minimum time that it has to be valid
	Most  time.Duration // maximum age
	// Long is the time to live of a token that no machine of the control plane keeps valid, and that
	// is renewed when half of the time is left; 0 if a machine does.
	Long time.Duration
	// Asks says that the API server is asked also for a token that was created recently.
	Asks bool
	// Shared is the boot data of machines that Auto Scaling launches. A new token is
	// stored there before it is stored in the account.
	Shared []*bootdata.Data
	After  []graph.Edge // the edges of Shared
	// Inline says that a launch template contains the token itself: its value stays,
	// because a new version of the template would replace all machines.
	Inline bool
}

// JoinTokenState is the state of the join token: the token that is stored in the account,
// and whether the cluster accepts it.
type JoinTokenState struct {
	Token       string    // a secret
	Until       time.Time // the earliest time at which it expires
	Unavailable string    // why the API server did not respond; "" if it did or was not used
	Status      string    // "valid", or why it has to be replaced
	Others      []string
	Renewed     bool // by this run
	NotShown    bool // AWS still shows an earlier one
}

// CloudID implements graph.State: the name of the Secret, which contains the public
// half of the token.
func (s JoinTokenState) CloudID() string {
	if s.Token == "" {
		return "none"
	}
	id, _, _ := strings.Cut(s.Token, ".")
	return tokenSecretPrefix + id
}

const (
	tokenSecretPrefix = bootstrapapi.BootstrapTokenSecretPrefix
	tokenSecrets      = "/api/v1/namespaces/kube-system/secrets" //nolint:gosec // a path
	valid             = "valid"
	expired           = "expired"
	never             = "never made" // of a cluster that Cluster API created
)

var (
	_ graph.Desired[JoinTokenState]  = (*JoinToken)(nil)
	_ graph.Updater[JoinTokenState]  = (*JoinToken)(nil)
	_ graph.Follower[JoinTokenState] = (*JoinToken)(nil)
	_ graph.TimeLimited              = (*JoinToken)(nil)
)

// Needs implements graph.Desired.
func (j *JoinToken) Needs() []graph.Edge { return append(j.API.needs(), j.After...) }

// TimeLimit implements graph.TimeLimited. The API server may be unavailable until this
// run has updated other resources.
func (j *JoinToken) TimeLimit() time.Duration { return 10 * time.Minute }

// Follow implements graph.Follower. A token that this run has renewed is valid, also while AWS
// shows an earlier one.
func (j *JoinToken) Follow(ctx context.Context, c *cloud.Clients, last *JoinTokenState) (*JoinTokenState, error) {
	if !last.Renewed || last.Until.Sub(c.Now()) < j.Least {
		return j.Find(ctx, c)
	}
	kept, err := secrets.PKIParameters(ctx, c)
	if err != nil {
		return nil, err
	}
	have := *last
	have.NotShown = string(kept.Parts[secrets.TokenName]) != last.Token
	return &have, nil
}

// Identify implements graph.Identified: the token is deleted with the cluster.
func (*JoinToken) Identify(context.Context, *cloud.Clients, *JoinTokenState) (*JoinTokenState, error) {
	return nil, nil
}

// Find implements graph.Desired. A token that was created recently is valid: the API
// server, which may not respond yet, is not used.
func (j *JoinToken) Find(ctx context.Context, c *cloud.Clients) (*JoinTokenState, error) {
	kept, err := secrets.PKIParameters(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &JoinTokenState{Token: string(kept.Parts[secrets.TokenName]), Status: valid}
	age := c.Clock.Since(kept.TokenCreated)
	if s.Token != "" && age < j.TTL-j.Least && j.Long == 0 && !j.Asks {
		s.Until = kept.TokenCreated.Add(j.TTL)
		return s, nil
	}
	k, err := j.API.Client(c)
	switch {
	case err != nil:
		return nil, err
	case k == nil && s.Token == "":
		s.Status = never // the keys are created first
		return s, nil
	case k == nil:
		s.Unavailable = "its address is not known"
		return s, nil
	}
	all, err := joinTokens(ctx, c, k)
	var unavailable *unavailableError
	if err = retryUnavailable(ctx, err); errors.As(err, &unavailable) {
		s.Unavailable = unavailable.why
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	j.among(s, all, age, c.Now())
	return s, nil
}

// among compares the token with those of the cluster.
func (j *JoinToken) among(s *JoinTokenState, all []corev1.Secret, age time.Duration, now time.Time) {
	if s.Status = expired; s.Token == "" {
		s.Status = never
	}
	for i := range all {
		t := &all[i]
		switch {
		case t.Name == s.CloudID():
			s.Status = j.status(t, s.Token, age, now)
			s.Until = expiryOf(t)
		case string(t.Data["description"]) == boot.TokenDescription:
			s.Others = append(s.Others, t.Name)
		}
	}
}

// lifetime is how long a token is valid after it is created or renewed.
func (j *JoinToken) lifetime() time.Duration { return max(j.TTL, j.Long) }

// status says whether a token of the cluster can be used.
func (j *JoinToken) status(t *corev1.Secret, token string, age time.Duration, now time.Time) string {
	switch left := expiryOf(t).Sub(now); {
	case !isToken(t, token):
		return "another one"
	case left <= 0:
		return expired
	case left < j.Least:
		return "about to expire"
	case left < j.Long/2:
		return "kept valid by no machine"
	case age > j.Most && !j.Inline:
		return fmt.Sprintf("%d days old", int(age.Hours()/24))
	}
	return valid
}

// Diff implements graph.Desired.
func (j *JoinToken) Diff(have *JoinTokenState) (d plan.Diff) {
	if have.Unavailable != "" {
		d.Await("API server", "unreachable: "+have.Unavailable, "reachable (no machine that is added could join)")
		return d
	}
	d.Set("state", have.Status, valid)
	d.Set("superseded", strings.Join(have.Others, ", "), "")
	if have.NotShown {
		d.Await("stored in AWS", "an earlier one", "the new one")
	}
	return d
}

// Update implements graph.Updater. A new token is created in the cluster first and stored
// in the account second, so that machines read only valid tokens, also when a run is
// interrupted. Earlier tokens stay valid for machines that have just read them, and are
// no longer renewed.
func (j *JoinToken) Update(ctx context.Context, c *cloud.Clients, have *JoinTokenState, d plan.Diff) (*JoinTokenState, error) {
	k, err := j.client(c)
	if err != nil {
		return nil, err
	}
	after, before := *have, have.Others
	if have.Status == never { // Find may not have had the keys to ask
		all, err := joinTokens(ctx, c, k)
		if err != nil {
			return nil, retryUnavailable(ctx, err)
		}
		var seen JoinTokenState
		j.among(&seen, all, 0, c.Now())
		before = seen.Others
	}
	if d.Has("state") {
		if after.Token, after.Until, err = j.renew(ctx, c, k, have.Token); err != nil {
			return nil, err
		}
		after.Renewed = true
		if after.Status = valid; have.Status != expired && have.Token != "" && after.Token != have.Token {
			before = append(before, have.CloudID())
		}
	}
	if after.Others = nil; len(before) == 0 {
		return &after, nil
	}
	for _, name := range before {
		err := patchToken(ctx, k, name, map[string]string{
			"description": "superseded: " + boot.TokenDescription, "expiration": c.Now().Add(j.TTL).UTC().Format(time.RFC3339),
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, retryUnavailable(ctx, err)
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

// renew creates a token, or renews the given one. It returns until when it is valid.
func (j *JoinToken) renew(ctx context.Context, c *cloud.Clients, k *kube.Client, token string) (string, time.Time, error) {
	again, until := j.Inline && token != "", c.Now().Add(j.lifetime())
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
		return "", until, retryUnavailable(ctx, err)
	}
	if !again {
		err = j.keep(ctx, c, token)
	}
	return token, until, err
}

// keep stores a token in the boot data of pools and in the account.
func (j *JoinToken) keep(ctx context.Context, c *cloud.Clients, token string) error {
	for _, data := range j.Shared {
		if _, err := data.Deliver(ctx, c, token); err != nil {
			return fmt.Errorf("bootstrap data: %w", err)
		}
	}
	return c.PutSecretParameter(ctx, c.ParameterPath("pki", secrets.TokenName), token, true)
}

// CurrentToken provides the join token for machines to launch.
type CurrentToken struct {
	Ref   *graph.Ref[JoinTokenState]
	Token *JoinToken
}

// Needs implements bootdata.TokenSource.
func (t *CurrentToken) Needs() []graph.Edge { return graph.Awaits(t.Ref) }

// Current implements bootdata.TokenSource. It uses the API server only if the token that
// the run knows is about to expire.
func (t *CurrentToken) Current(ctx context.Context, c *cloud.Clients) (string, error) {
	have, _ := t.Ref.Found()
	if have.Until.Sub(c.Now()) >= t.Token.Least {
		return have.Token, nil
	}
	return cloud.RememberUntil(ctx, c, "join token", func(ctx context.Context) (string, time.Time, error) {
		token, until, err := t.Token.prolong(ctx, c)
		return token, until.Add(-t.Token.Least), err
	})
}

// prolong renews the token of the account, unless it is valid long enough, because the
// control plane may renew it. If the token is not in the cluster, because it has expired
// or somebody has deleted it, prolong creates another.
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
		return "", until, retryUnavailable(ctx, err)
	}
	now := c.Now()
	for i := range all {
		t := &all[i]
		left := expiryOf(t).Sub(now)
		switch {
		case !isToken(t, token) || left <= 0:
			continue
		case left >= j.Least:
			return token, expiryOf(t), nil
		}
		until = now.Add(j.lifetime())
		err = patchToken(ctx, k, t.Name, map[string]string{"expiration": until.UTC().Format(time.RFC3339)})
		if apierrors.IsNotFound(err) {
			break // it has just expired
		}
		return token, until, retryUnavailable(ctx, err)
	}
	return j.renew(ctx, c, k, token)
}

func patchToken(ctx context.Context, k *kube.Client, name string, data map[string]string) error {
	change, err := json.Marshal(map[string]any{"stringData": data})
	if err != nil {
		return err
	}
	_, err = k.Objects(kube.Core("secrets"), metav1.NamespaceSystem).
		Patch(ctx, name, apitypes.MergePatchType, change, metav1.PatchOptions{FieldManager: kube.FieldManager})
	return err
}

// isToken reports whether machines can join with the token of the Secret.
func isToken(s *corev1.Secret, token string) bool {
	id, secret, _ := strings.Cut(token, ".")
	return s.Name == tokenSecretPrefix+id && string(s.Data[bootstrapapi.BootstrapTokenSecretKey]) == secret &&
		string(s.Data[bootstrapapi.BootstrapTokenUsageAuthentication]) == "true"
}

// expiryOf returns when the token of a Secret expires: a far time if it never does, the
// zero time if its expiration cannot be parsed.
func expiryOf(s *corev1.Secret) time.Time {
	text := string(s.Data[bootstrapapi.BootstrapTokenExpirationKey])
	if text == "" {
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	at, _ := time.Parse(time.RFC3339, text)
	return at
}

// joinTokens lists the Secrets of the bootstrap tokens of the cluster.
func joinTokens(ctx context.Context, c *cloud.Clients, k *kube.Client) ([]corev1.Secret, error) {
	return cloud.Remember(ctx, c, "join tokens", func(ctx context.Context) ([]corev1.Secret, error) {
		var list corev1.SecretList
		err := k.Get(ctx, tokenSecrets+"?fieldSelector=type="+string(bootstrapapi.SecretTypeBootstrapToken), &list)
		return list.Items, err
	})
}
