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

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
)

const (
	tokenPrefix   = "k8s-aws-v1." //nolint:gosec // not a secret: the prefix of all tokens for EKS
	clusterHeader = "x-k8s-aws-id"

	// signatureLife is how long the request in a token is valid for STS, in seconds. EKS
	// rejects tokens with more than 15 minutes. Other programs use 60 seconds, too; EKS
	// uses the date of the request instead.
	signatureLife = "60"

	// tokenLife is a minute less than the 15 minutes for which EKS accepts a token.
	tokenLife = 14 * time.Minute
)

// Token authenticates the caller at a cluster. It is a secret; String does not contain
// it.
type Token struct {
	Value   string
	Expires time.Time // a minute before EKS rejects it
}

// String hides the token from logs and messages.
func (t Token) String() string { return "token until " + t.Expires.UTC().Format(time.RFC3339) }

// GoString hides the token for %#v.
func (t Token) GoString() string { return t.String() }

// NewToken creates a token for a cluster with the credentials and the region of cfg,
// which must be the region of the cluster. The token is a signed request to STS, with
// which EKS asks STS for the identity. Retrieving the credentials may take calls;
// creating the token takes none, so it succeeds even for a cluster that does not exist or
// does not permit the user.
func NewToken(ctx context.Context, cfg aws.Config, cluster string) (Token, error) {
	if cluster == "" {
		return Token{}, errors.New("the name of the cluster in EKS is missing")
	}
	presigner := sts.NewPresignClient(sts.NewFromConfig(awshttp.Checked(cfg)))
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

// Tokens returns a token source for a cluster, which creates a new token before the last
// one expires.
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

// signedAt returns the date in a signed URL. Errors do not contain the URL: it is a
// secret.
func signedAt(signed string) (time.Time, error) {
	u, err := url.Parse(signed)
	if err != nil {
		return time.Time{}, errors.New("the signed request is not a URL")
	}
	at, err := time.Parse("20060102T150405Z", u.Query().Get("X-Amz-Date"))
	if err != nil {
		return time.Time{}, errors.New("the signed request has no date")
	}
	return at, nil
}

// Assume returns the configuration with the credentials of a role. The role is assumed
// when the credentials are first needed.
func Assume(cfg aws.Config, role string) aws.Config {
	provider := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(awshttp.Checked(cfg)), role, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = "clusterawsadm-eks-token"
	})
	cfg = cfg.Copy()
	cfg.Credentials = aws.NewCredentialsCache(provider)
	return cfg
}

// Versions of ExecCredential, the answer of a credential plugin to kubectl. There are no
// other differences between them.
const (
	ExecV1      = "client.authentication.k8s.io/v1"
	ExecV1Beta1 = "client.authentication.k8s.io/v1beta1"
)

// ExecCredential returns the token as the answer of a credential plugin. info is the
// value of KUBERNETES_EXEC_INFO, in which clients state the API version; "" means
// v1beta1.
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
	return "", fmt.Errorf(
		"KUBERNETES_EXEC_INFO has the unsupported apiVersion %s: set apiVersion in users[].user.exec of the kubeconfig to %s",
		wanted.APIVersion,
		ExecV1,
	)
}
