package kms

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// State is the state of KMS.
type State struct {
	Keys    map[string]*Key   // by ARN
	Aliases map[string]string // ARN of the alias -> ARN of the key
}

// Key is a KMS key.
type Key struct {
	State types.KeyState     // "": Enabled
	Usage types.KeyUsageType // "": ENCRYPT_DECRYPT
	// Denies lists the operations that the policy of the key does not allow to the account's user.
	Denies []string
}

func (svc *Service) simulate() {
	core.OnEverywhere(svc.Account, svc.encrypt, "KeyId", "Plaintext")
	core.OnEverywhere(svc.Account, svc.decrypt, "KeyId", "CiphertextBlob")
	core.OnEverywhere(svc.Account, svc.describeKey, "KeyId")
}

// managed is the beginning of the aliases of the keys that AWS manages for its services. It makes a key when
// it is needed first ("AWS managed keys", KMS developer guide).
const managed = "alias/aws/"

// named returns the key of an ID, an ARN or an alias, as a region sees it.
func (svc *Service) named(region, id string) (arn string, key *Key, err error) {
	missing := func(text string) error { return &types.NotFoundException{Message: aws.String(text)} }
	switch {
	case !strings.HasPrefix(id, "arn:") && strings.HasPrefix(id, "alias/"):
		arn = core.ARN("kms", region, svc.Number(), id)
	case !strings.HasPrefix(id, "arn:"):
		arn = core.ARN("kms", region, svc.Number(), "key/"+id)
	case strings.Count(id, ":") != 5 || strings.Split(id, ":")[3] != region: // an endpoint knows the keys of its region only
		return "", nil, missing("Invalid arn " + strings.Split(id+":::", ":")[3])
	default:
		arn = id
	}
	if name := arn[strings.LastIndex(arn, ":")+1:]; strings.HasPrefix(name, managed) {
		return core.ARN("kms", region, svc.Number(), "key/"+managedID(name)), &Key{}, nil
	}
	if strings.Contains(arn, ":alias/") {
		to, ok := svc.state.Aliases[arn]
		if !ok {
			return "", nil, missing("Alias " + arn + " is not found.")
		}
		arn = to
	}
	if key = svc.state.Keys[arn]; key == nil {
		return "", nil, missing("Key '" + arn + "' does not exist")
	}
	return arn, key, nil
}

// managedID is the ID of the key of an alias of AWS.
func managedID(alias string) string {
	sum := sha256.Sum256([]byte(alias))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// find returns the key of an ID, an ARN or an alias that an operation can use.
func (svc *Service) find(region, id, operation string) (arn string, err error) {
	arn, key, err := svc.named(region, id)
	if err != nil {
		return "", err
	}
	if err := denied(key, arn, operation); err != nil {
		return "", err
	}
	// The state of a key and what then fails: "Key states of AWS KMS keys" in the developer guide.
	if key.State == types.KeyStateDisabled {
		return "", &types.DisabledException{Message: aws.String(arn + " is disabled.")}
	}
	if key.State != "" && key.State != types.KeyStateEnabled {
		return "", &types.KMSInvalidStateException{Message: aws.String(arn + " is pending deletion.")} // or import, or unavailable
	}
	if usage := cmp.Or(key.Usage, types.KeyUsageTypeEncryptDecrypt); usage != types.KeyUsageTypeEncryptDecrypt {
		return "", &types.InvalidKeyUsageException{Message: aws.String(arn + " key usage is " + string(usage) + " which is not valid for " + operation + ".")}
	}
	return arn, nil
}

// denied returns the error of an operation that the policy of a key does not allow; nil if it does.
func denied(key *Key, arn, operation string) error {
	if !slices.Contains(key.Denies, operation) {
		return nil
	}
	return core.Fail(
		"AccessDeniedException",
		"User is not authorized to perform: kms:%s on resource: %s because no resource-based policy allows the kms:%[1]s action",
		operation,
		arn,
	)
}

// KeyARN returns the ARN of the key of an ID, an ARN or an alias with which a service of AWS in the account's region encrypts, or why it cannot.
func (svc *Service) KeyARN(id string) (string, error) {
	return svc.find(svc.Region, id, "GenerateDataKeyWithoutPlaintext")
}

// Usable returns why a service of AWS in the account's region cannot encrypt with a key; nil if it can.
func (svc *Service) Usable(id string) error {
	_, err := svc.KeyARN(id)
	return err
}

func (svc *Service) describeKey(ctx context.Context, in *kms.DescribeKeyInput) (*kms.DescribeKeyOutput, error) {
	arn, key, err := svc.named(svc.region(ctx), aws.ToString(in.KeyId))
	if err == nil {
		err = denied(key, arn, "DescribeKey") // the policy of the key has to allow it ("AWS KMS permissions", developer guide)
	}
	if err != nil {
		return nil, err
	}
	return &kms.DescribeKeyOutput{KeyMetadata: &types.KeyMetadata{
		Arn: &arn, KeyId: aws.String(arn[strings.LastIndex(arn, "/")+1:]), KeyState: cmp.Or(key.State, types.KeyStateEnabled),
		KeyUsage: cmp.Or(key.Usage, types.KeyUsageTypeEncryptDecrypt), Enabled: cmp.Or(key.State, types.KeyStateEnabled) == types.KeyStateEnabled,
	}}, nil
}

func (svc *Service) region(ctx context.Context) string {
	return cmp.Or(awsmiddleware.GetRegion(ctx), svc.Region)
}

// mostPlaintext is the size of the largest secret (Encrypt in the API reference).
const mostPlaintext = 4096

func (svc *Service) encrypt(ctx context.Context, in *kms.EncryptInput) (*kms.EncryptOutput, error) {
	if n := len(in.Plaintext); n == 0 || n > mostPlaintext {
		return nil, core.Fail("ValidationException", "Value at 'plaintext' failed to satisfy constraint: Member must have length between 1 and %d", mostPlaintext)
	}
	arn, err := svc.find(svc.region(ctx), aws.ToString(in.KeyId), "Encrypt")
	if err != nil {
		return nil, err
	}
	box := boxOf(arn)
	nonce := []byte(svc.Hash())[:box.NonceSize()]
	sealed := append([]byte(arn+"\n"), nonce...)
	return &kms.EncryptOutput{
		KeyId:               &arn,
		CiphertextBlob:      box.Seal(sealed, nonce, in.Plaintext, nil),
		EncryptionAlgorithm: types.EncryptionAlgorithmSpecSymmetricDefault,
	}, nil
}

func (svc *Service) decrypt(ctx context.Context, in *kms.DecryptInput) (*kms.DecryptOutput, error) {
	of, sealed, _ := bytes.Cut(in.CiphertextBlob, []byte("\n"))
	arn, err := svc.find(svc.region(ctx), cmp.Or(aws.ToString(in.KeyId), string(of)), "Decrypt")
	if err != nil {
		return nil, err
	}
	if svc.state.Keys[string(of)] != nil && string(of) != arn {
		return nil, &types.IncorrectKeyException{Message: aws.String("The key ID in the request does not identify a CMK that can perform this operation.")}
	}
	box := boxOf(arn)
	if len(sealed) < box.NonceSize() {
		return nil, &types.InvalidCiphertextException{}
	}
	plain, err := box.Open(nil, sealed[:box.NonceSize()], sealed[box.NonceSize():], nil)
	if err != nil {
		return nil, &types.InvalidCiphertextException{}
	}
	return &kms.DecryptOutput{KeyId: &arn, Plaintext: plain, EncryptionAlgorithm: types.EncryptionAlgorithmSpecSymmetricDefault}, nil
}

// boxOf returns the cipher of a key.
func boxOf(arn string) cipher.AEAD {
	material := sha256.Sum256([]byte(arn))
	block, err := aes.NewCipher(material[:])
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	box, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // as above
	}
	return box
}
