package cloud

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// Token returns a client token for a create call of this run: the same for the
// same words, so that an attempt repeated after a lost answer makes no twin,
// and never that of another run, since AWS answers a used token with a thing
// that may be long gone.
func (c *Clients) Token(words ...string) *string {
	h := sha256.New()
	h.Write([]byte(c.tokens))
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

// AskOnce keeps the SDK from sending a create call again when its answer was
// lost: the call has no client token, and a second one could make a twin. A
// call that was refused for its pace is still repeated.
func AskOnce(o *ec2.Options) { o.Retryer = onlyThrottles{o.Retryer} }

// onlyThrottles repeats nothing but what AWS has refused for its pace.
type onlyThrottles struct{ aws.Retryer }

func (r onlyThrottles) IsErrorRetryable(err error) bool {
	return retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}.IsErrorThrottle(err) == aws.TrueTernary
}
