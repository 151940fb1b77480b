package eks

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

const (
	keyID   = "AKIDEXAMPLE"
	secret  = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	session = "AQoDYXdzEPT//////////wEXAMPLE=="
	// emptyBody is the SHA-256 of an empty body.
	emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

func config(region string) aws.Config {
	return aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider(keyID, secret, session)}
}

// opened returns the request in a token.
func opened(t *testing.T, token string) *url.URL {
	t.Helper()
	rest, ok := strings.CutPrefix(token, "k8s-aws-v1.")
	require.True(t, ok)
	assert.NotContains(t, rest, "=")
	decoded, err := base64.RawURLEncoding.DecodeString(rest)
	require.NoError(t, err)
	u, err := url.Parse(string(decoded))
	require.NoError(t, err)
	return u
}

// TestToken verifies a token as EKS does. The signature is checked in two ways: computed
// here by the specification of Signature Version 4, and with the SDK's signer.
func TestToken(t *testing.T) {
	for region, host := range map[string]string{
		"us-east-1": "sts.us-east-1.amazonaws.com", "eu-central-2": "sts.eu-central-2.amazonaws.com",
		"us-gov-west-1": "sts.us-gov-west-1.amazonaws.com", "cn-north-1": "sts.cn-north-1.amazonaws.com.cn",
	} {
		synctest.Test(t, func(t *testing.T) {
			token, err := NewToken(t.Context(), config(region), "default_demo")
			require.NoError(t, err)
			assert.Equal(t, time.Now().Add(14*time.Minute).Unix(), token.Expires.Unix())
			u := opened(t, token.Value)
			assert.Equal(t, "https", u.Scheme)
			assert.Equal(t, host, u.Host)
			assert.Equal(t, "/", u.Path)
			q := u.Query()
			date := time.Now().UTC().Format("20060102T150405Z")
			scope := date[:8] + "/" + region + "/sts/aws4_request"
			for name, want := range map[string]string{
				"Action": "GetCallerIdentity", "Version": "2011-06-15", "X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Expires": "60",
				"X-Amz-Date": date, "X-Amz-Credential": keyID + "/" + scope, "X-Amz-SignedHeaders": "host;x-k8s-aws-id", "X-Amz-Security-Token": session,
			} {
				assert.Equal(t, []string{want}, q[name], name)
			}
			assert.Len(t, q, 9, "these and the signature")

			signature := q.Get("X-Amz-Signature")
			q.Del("X-Amz-Signature")
			assert.Equal(t, recomputed(q, host, "default_demo", date, region), signature)
			assert.Equal(t, signedBySDK(t, u, "default_demo", region, time.Now()), signature)
			assert.NotEqual(t, recomputed(q, host, "other", date, region), signature, "it is valid for one cluster")
		})
	}
}

// recomputed returns the Signature Version 4 of a request for the identity of the caller
// at a cluster.
func recomputed(q url.Values, host, cluster, date, region string) string {
	query := strings.ReplaceAll(q.Encode(), "+", "%20")
	canonical := "GET\n/\n" + query + "\nhost:" + host + "\nx-k8s-aws-id:" + cluster + "\n\nhost;x-k8s-aws-id\n" + emptyBody
	hash := sha256.Sum256([]byte(canonical))
	toSign := "AWS4-HMAC-SHA256\n" + date + "\n" + date[:8] + "/" + region + "/sts/aws4_request\n" + hex.EncodeToString(hash[:])
	key := []byte("AWS4" + secret)
	for _, part := range []string{date[:8], region, "sts", "aws4_request", toSign} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return hex.EncodeToString(key)
}

// signedBySDK signs the request in a URL again.
func signedBySDK(t *testing.T, u *url.URL, cluster, region string, at time.Time) string {
	t.Helper()
	q := url.Values{}
	for _, name := range []string{"Action", "Version", "X-Amz-Expires"} {
		q.Set(name, u.Query().Get(name))
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+u.Host+"/?"+q.Encode(), nil)
	require.NoError(t, err)
	r.Header.Set("x-k8s-aws-id", cluster)
	signed, _, err := v4.NewSigner().
		PresignHTTP(t.Context(), aws.Credentials{AccessKeyID: keyID, SecretAccessKey: secret, SessionToken: session}, r, emptyBody, "sts", region, at)
	require.NoError(t, err)
	again, err := url.Parse(signed)
	require.NoError(t, err)
	return again.Query().Get("X-Amz-Signature")
}

func TestTokenIsNotPrinted(t *testing.T) {
	token, err := NewToken(t.Context(), config("us-east-1"), "demo")
	require.NoError(t, err)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		said := fmt.Sprintf(format, token)
		assert.NotContains(t, said, token.Value[:20])
		assert.Contains(t, said, "token until 20")
	}
	_, err = signedAt("https://sts/?X-Amz-Signature=abcdef")
	require.EqualError(t, err, "the signed request has no date")
	_, err = signedAt("https://sts/%zz?X-Amz-Signature=abcdef")
	require.EqualError(t, err, "the signed request is not a URL")
}

func TestTokenErrors(t *testing.T) {
	_, err := NewToken(t.Context(), config("us-east-1"), "")
	require.ErrorContains(t, err, "the name of the cluster in EKS is missing")
	broken := aws.Config{Region: "us-east-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("the session has ended")
	})}
	_, err = NewToken(t.Context(), broken, "demo")
	require.ErrorContains(t, err, "sign a token for cluster demo: ")
	require.ErrorContains(t, err, "the session has ended")
}

// TestTokenOfARole: the token is signed with the keys of the assumed role.
func TestTokenOfARole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		cfg := Assume(a.Config(), "arn:aws:iam::999999999999:role/admin")
		token, err := NewToken(t.Context(), cfg, "demo")
		require.NoError(t, err)
		q := opened(t, token.Value).Query()
		assert.True(t, strings.HasPrefix(q.Get("X-Amz-Credential"), "ASIA"), q.Get("X-Amz-Credential"))
		assert.NotEmpty(t, q.Get("X-Amz-Security-Token"))
		who, err := sts.NewFromConfig(cfg).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
		require.NoError(t, err)
		assert.Equal(t, "arn:aws:sts::999999999999:assumed-role/admin/clusterawsadm-eks-token", *who.Arn)
	})
}

func TestExecCredential(t *testing.T) {
	token := Token{Value: "k8s-aws-v1.abc", Expires: time.Date(2026, 8, 25, 12, 14, 0, 0, time.UTC)}
	for info, version := range map[string]string{
		"": "client.authentication.k8s.io/v1beta1",
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{"interactive":true}}`: "client.authentication.k8s.io/v1beta1",
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}`:     "client.authentication.k8s.io/v1",
	} {
		out, err := ExecCredential(token, info)
		require.NoError(t, err)
		assert.JSONEq(t, `{"kind":"ExecCredential","apiVersion":"`+version+`","spec":{"interactive":false},`+
			`"status":{"expirationTimestamp":"2026-08-25T12:14:00Z","token":"k8s-aws-v1.abc"}}`, string(out))
		var read clientauthv1.ExecCredential
		require.NoError(t, json.Unmarshal(out, &read))
		assert.True(t, token.Expires.Equal(read.Status.ExpirationTimestamp.Time))
	}
	for info, want := range map[string]string{
		"{":  "KUBERNETES_EXEC_INFO is not JSON",
		"{}": "KUBERNETES_EXEC_INFO has no apiVersion",
		`{"apiVersion":"client.authentication.k8s.io/v1alpha1"}`: "KUBERNETES_EXEC_INFO has the unsupported apiVersion client.authentication.k8s.io/v1alpha1: " +
			"set apiVersion in users[].user.exec of the kubeconfig to client.authentication.k8s.io/v1",
	} {
		_, err := ExecCredential(token, info)
		require.EqualError(t, err, want)
	}
}

func kubeconfig(method ekscontrolplanev1.EKSTokenMethod) Kubeconfig {
	return Kubeconfig{
		Cluster:  "default_demo",
		Endpoint: "https://0123ABCD.gr7.us-east-1.eks.amazonaws.com",
		CA:       []byte("-----BEGIN CERTIFICATE-----\n"),
		Region:   "us-east-1",
		Method:   method,
	}
}

func TestKubeconfig(t *testing.T) {
	for _, method := range []ekscontrolplanev1.EKSTokenMethod{Clusterawsadm, AWSCLI, IAMAuthenticator} {
		k := kubeconfig(method)
		plain, err := k.Encode()
		require.NoError(t, err)
		k.Profile, k.Role = "prod", "arn:aws:iam::123456789012:role/admin"
		full, err := k.Encode()
		require.NoError(t, err)
		golden.Assert(t, "kubeconfig-"+string(method)+".yaml", string(plain)+"---\n"+string(full))

		read, err := clientcmd.Load(full)
		require.NoError(t, err)
		require.NoError(t, clientcmd.Validate(*read))
		assert.Equal(t, "default_demo-user@default_demo", read.CurrentContext)
		assert.Equal(t, &clientcmdapi.Context{Cluster: "default_demo", AuthInfo: "default_demo-user"}, strip(read.Contexts[read.CurrentContext]))
	}
	assert.Equal(t, AWSCLI, ekscontrolplanev1.EKSTokenMethodAWSCli)
	assert.Equal(t, IAMAuthenticator, ekscontrolplanev1.EKSTokenMethodIAMAuthenticator)
	k := kubeconfig(Clusterawsadm)
	k.Command = "/opt/bin/clusterawsadm"
	exec, err := k.exec()
	require.NoError(t, err)
	assert.Equal(t, "/opt/bin/clusterawsadm", exec.Command)
}

// strip removes fields that clientcmd adds when it reads a kubeconfig.
func strip(c *clientcmdapi.Context) *clientcmdapi.Context {
	return &clientcmdapi.Context{Cluster: c.Cluster, AuthInfo: c.AuthInfo}
}

func TestKubeconfigErrors(t *testing.T) {
	for want, change := range map[string]func(*Kubeconfig){
		"name and the region": func(k *Kubeconfig) { k.Region = "" },
		"not an https URL":    func(k *Kubeconfig) { k.Endpoint = "0123ABCD.gr7.us-east-1.eks.amazonaws.com" },
		"certificate of":      func(k *Kubeconfig) { k.CA = nil },
		`spec.tokenMethod: "pigeon" is not one of clusterawsadm, aws-cli, iam-authenticator`: func(k *Kubeconfig) { k.Method = "pigeon" },
	} {
		k := kubeconfig(AWSCLI)
		change(&k)
		_, err := k.Encode()
		require.ErrorContains(t, err, want)
	}
}
