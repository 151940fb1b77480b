package eks

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
)

const (
	tokenPrefix   = "k8s-aws-v1." //nolint:gosec // no secret: all tokens that EKS takes begin with it
	clusterHeader = "x-k8s-aws-id"

	// signatureLife is how long the request in a token may be sent to STS, in
	// seconds. EKS refuses tokens that allow more than 15 minutes; 60 seconds
	// are what all makers of tokens write, and EKS goes by the date instead.
	signatureLife = "60"

	// tokenLife is a minute less than the 15 that EKS takes a token for.
	tokenLife = 14 * time.Minute
)

// Token lets its bearer into a cluster, as who made it. It is a secret, which
// String does not tell.
type Token struct {
	Value   string
	Expires time.Time // a minute before EKS takes it no more
}

// String keeps the token out of logs and messages.
func (t Token) String() string { return "token until " + t.Expires.UTC().Format(time.RFC3339) }

// GoString is for %#v.
func (t Token) GoString() string { return t.String() }

// NewToken makes a token for a cluster with the credentials and in the region
// of cfg, which must be the cluster's. It is a signed request to STS, whose
// sender STS names to EKS. Getting the credentials may take calls; making the
// token takes none, and so succeeds for a cluster that does not exist or does
// not know the user.
func NewToken(ctx context.Context, cfg aws.Config, cluster string) (Token, error) {
	if cluster == "" {
		return Token{}, errors.New("no name of the cluster in EKS")
	}
	presigner := sts.NewPresignClient(sts.NewFromConfig(cfg))
	request, err := presigner.PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, func(o *sts.Options) {
			o.APIOptions = append([]func(*middleware.Stack) error{
				smithyhttp.SetHeaderValue(clusterHeader, cluster),
				smithyhttp.SetHeaderValue("X-Amz-Expires", signatureLife), // the signer moves it to the query
			}, o.APIOptions...)
		})
	})
	if err != nil {
		return Token{}, fmt.Errorf("sign a token for cluster %s: %w", cluster, err)
	}
	signed, err := signedAt(request.URL)
	if err != nil {
		return Token{}, fmt.Errorf("sign a token for cluster %s: %w", cluster, err)
	}
	return Token{Value: tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(request.URL)), Expires: signed.Add(tokenLife)}, nil
}

// Tokens returns a source of tokens for a cluster that makes a new one when the
// last one is about to expire.
func Tokens(cfg aws.Config, cluster string) func(context.Context) (string, error) {
	var last atomic.Pointer[Token]
	return func(ctx context.Context) (string, error) {
		if t := last.Load(); t != nil && time.Until(t.Expires) > time.Minute {
			return t.Value, nil
		}
		t, err := NewToken(ctx, cfg, cluster)
		if err == nil {
			last.Store(&t)
		}
		return t.Value, err
	}
}

// signedAt returns the time in a signed URL, which no error tells: it is a
// secret.
func signedAt(signed string) (time.Time, error) {
	u, err := url.Parse(signed)
	if err != nil {
		return time.Time{}, errors.New("the signed request is no URL")
	}
	at, err := time.Parse("20060102T150405Z", u.Query().Get("X-Amz-Date"))
	if err != nil {
		return time.Time{}, errors.New("the signed request has no date")
	}
	return at, nil
}

// Assume returns the configuration with the credentials of a role. The role is
// assumed when they are first needed.
func Assume(cfg aws.Config, role string) aws.Config {
	provider := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), role, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = "clusterawsadm-eks-token"
	})
	cfg = cfg.Copy()
	cfg.Credentials = aws.NewCredentialsCache(provider)
	return cfg
}

// Versions of the ExecCredential, the answer of a credential plugin to kubectl.
// They differ in nothing else.
const (
	ExecV1      = "client.authentication.k8s.io/v1"
	ExecV1Beta1 = "client.authentication.k8s.io/v1beta1"
)

// ExecCredential is the token as the answer of a credential plugin. The info is
// the value of KUBERNETES_EXEC_INFO, by which clients say the version they want;
// "" stands for v1beta1.
func ExecCredential(t Token, info string) ([]byte, error) {
	version, err := wantedVersion(info)
	if err != nil {
		return nil, err
	}
	expires := metav1.NewTime(t.Expires)
	out, err := json.MarshalIndent(clientauthv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ExecCredential"},
		Status:   &clientauthv1.ExecCredentialStatus{ExpirationTimestamp: &expires, Token: t.Value},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the ExecCredential: %w", err)
	}
	return append(out, '\n'), nil
}

func wantedVersion(info string) (string, error) {
	if info == "" {
		return ExecV1Beta1, nil
	}
	var wanted metav1.TypeMeta
	if err := json.Unmarshal([]byte(info), &wanted); err != nil {
		return "", errors.New("KUBERNETES_EXEC_INFO is not JSON")
	}
	switch wanted.APIVersion {
	case ExecV1, ExecV1Beta1:
		return wanted.APIVersion, nil
	case "":
		return "", errors.New("KUBERNETES_EXEC_INFO has no apiVersion")
	}
	return "", fmt.Errorf("KUBERNETES_EXEC_INFO wants %s, which is not known: set apiVersion in users[].user.exec of the kubeconfig to %s", wanted.APIVersion, ExecV1)
}
