package cloud

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// Token returns a client token for a create call. Within a run, the same words give the
// same token, so that a repeated attempt creates no duplicate. A run that takes over from
// one that was killed has the same tokens, as long as requests of the other one may reach
// AWS. All other runs have different ones: AWS answers a used token with the resource of
// the earlier call, which may have been deleted since.
func (c *Clients) Token(words ...string) *string {
	h := sha256.New()
	h.Write([]byte(cmp.Or(c.inherited, c.tokens)))
	for _, w := range words {
		h.Write([]byte{0})
		h.Write([]byte(w))
	}
	return aws.String(hex.EncodeToString(h.Sum(nil))[:32])
}

func randomToken() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b)
}

// SendOnce prevents the SDK from repeating a create call that has no client token when
// its answer is lost: a second call could create a duplicate. A call that was throttled,
// or could not be sent, is still repeated.
func SendOnce(o *ec2.Options) { o.Retryer = onlyWithoutEffect{o.Retryer} }

// SendCommandOnce is SendOnce for a command that a user runs on a machine.
func SendCommandOnce(o *ssm.Options) { o.Retryer = onlyWithoutEffect{o.Retryer} }

// onlyWithoutEffect repeats only calls that have certainly had no effect.
type onlyWithoutEffect struct{ aws.Retryer }

func (r onlyWithoutEffect) IsErrorRetryable(err error) bool {
	return Unconnected(err) && r.Retryer.IsErrorRetryable(err) ||
		retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}.IsErrorThrottle(err) == aws.TrueTernary
}
