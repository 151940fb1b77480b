package s3

import (
	"bytes"
	"cmp"
	"crypto/md5" //nolint:gosec // the ETag of a small object is its MD5
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// nullVersion is the version ID of all objects in a bucket without versioning.
const nullVersion = "null"

func (svc *Service) simulateObjects() {
	everywhere(
		svc,
		svc.putObject,
		"Bucket",
		"ExpectedBucketOwner",
		"Key",
		"Body",
		"ContentLength",
		"ContentType",
		"Metadata",
		"ServerSideEncryption",
		"ChecksumAlgorithm",
		"IfNoneMatch",
	)
	everywhere(svc, svc.getObject, "Bucket", "ExpectedBucketOwner", "Key", "ChecksumMode", "VersionId")
	everywhere(svc, svc.headObject, "Bucket", "ExpectedBucketOwner", "Key", "ChecksumMode", "VersionId")
	core.On(svc.Account, svc.listObjects, "Bucket", "ExpectedBucketOwner", "Prefix", "Delimiter", "EncodingType", "MaxKeys", "ContinuationToken", "StartAfter")
	core.On(svc.Account, svc.listVersions, "Bucket", "ExpectedBucketOwner", "Prefix", "MaxKeys", "KeyMarker", "VersionIdMarker")
	core.On(svc.Account, svc.deleteObject, "Bucket", "ExpectedBucketOwner", "Key", "VersionId")
	core.On(svc.Account, svc.deleteObjects, "Bucket", "ExpectedBucketOwner", "Delete", "ChecksumAlgorithm")
}

func (svc *Service) putObject(in *s3.PutObjectInput) (*s3.PutObjectOutput, error) {
	b, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	o := &Object{
		Key: aws.ToString(
			in.Key,
		),
		Encryption:  cmp.Or(string(in.ServerSideEncryption), "AES256"),
		ContentType: cmp.Or(aws.ToString(in.ContentType), "application/octet-stream"),
		Metadata:    map[string]string{},
		Modified:    svc.Now(),
		Body:        []byte{},
	}
	maps.Copy(o.Metadata, in.Metadata)
	if len(o.Key) > 1024 {
		return nil, core.Fail("KeyTooLongError", "your key is too long")
	}
	if o.Encryption != "AES256" && o.Encryption != "aws:kms" {
		return nil, core.NotSimulated("PutObject: encryption %s", o.Encryption)
	}
	switch none := in.IfNoneMatch; {
	case none == nil:
	case *none != "*":
		return nil, core.Fail("NotImplemented", "If-None-Match must be *")
	case b.Objects[o.Key] != nil:
		return nil, core.Fail("PreconditionFailed", "at least one of the pre-conditions you specified did not hold")
	}
	if in.Body != nil {
		if o.Body, err = io.ReadAll(in.Body); err != nil {
			return nil, err
		}
	}
	if in.ContentLength != nil && *in.ContentLength != int64(len(o.Body)) {
		return nil, core.Fail("IncompleteBody", "the body is not as long as the Content-Length says")
	}
	sum := md5.Sum(o.Body) //nolint:gosec // the ETag of a small object is its MD5
	o.ETag = `"` + hex.EncodeToString(sum[:]) + `"`
	b.Objects[o.Key] = o
	return &s3.PutObjectOutput{ETag: aws.String(o.ETag), ServerSideEncryption: types.ServerSideEncryption(o.Encryption)}, nil
}

// object returns an object.
func (svc *Service) object(bucket, owner, key, version *string) (*Object, error) {
	b, err := svc.bucket(bucket, owner)
	if err != nil {
		return nil, err
	}
	if version != nil && *version != nullVersion {
		return nil, core.Fail("InvalidArgument", "invalid version id specified")
	}
	o, ok := b.Objects[aws.ToString(key)]
	if !ok {
		return nil, &types.NoSuchKey{Message: aws.String("The specified key does not exist.")}
	}
	return o, nil
}

func (svc *Service) getObject(in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	o, err := svc.object(in.Bucket, in.ExpectedBucketOwner, in.Key, in.VersionId)
	if err != nil {
		return nil, err
	}
	return &s3.GetObjectOutput{
		Body:          io.NopCloser(bytes.NewReader(bytes.Clone(o.Body))),
		ContentLength: aws.Int64(int64(len(o.Body))),
		ContentType:   aws.String(o.ContentType),
		ETag: aws.String(
			o.ETag,
		),
		LastModified:         aws.Time(o.Modified),
		Metadata:             maps.Clone(o.Metadata),
		ServerSideEncryption: types.ServerSideEncryption(o.Encryption),
	}, nil
}

func (svc *Service) headObject(in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	if b := svc.state.Buckets[aws.ToString(in.Bucket)]; b == nil && !taken(aws.ToString(in.Bucket)) {
		return nil, &types.NotFound{Message: aws.String("Not Found")}
	}
	o, err := svc.object(in.Bucket, in.ExpectedBucketOwner, in.Key, in.VersionId)
	if errors.As(err, new(*types.NoSuchKey)) {
		return nil, &types.NotFound{Message: aws.String("Not Found")}
	}
	if err != nil {
		return nil, headless(err)
	}
	return &s3.HeadObjectOutput{
		ContentLength: aws.Int64(int64(len(o.Body))), ContentType: aws.String(o.ContentType), ETag: aws.String(o.ETag),
		LastModified: aws.Time(o.Modified), Metadata: maps.Clone(o.Metadata), ServerSideEncryption: types.ServerSideEncryption(o.Encryption),
	}, nil
}

// objectsAfter returns the objects of a bucket with a prefix and after a key, sorted by
// key.
func (b *Bucket) objectsAfter(prefix, after *string) (list []*Object) {
	for _, o := range core.ByKey(b.Objects) {
		if strings.HasPrefix(o.Key, aws.ToString(prefix)) && o.Key > aws.ToString(after) {
			list = append(list, o)
		}
	}
	return list
}

func (svc *Service) listVersions(in *s3.ListObjectVersionsInput) (*s3.ListObjectVersionsOutput, error) {
	b, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if in.VersionIdMarker != nil && in.KeyMarker == nil {
		return nil, core.Fail("InvalidArgument", "a version-id marker cannot be specified without a key marker")
	}
	part, next, err := core.Page(svc.Account, b.objectsAfter(in.Prefix, in.KeyMarker), nil, in.MaxKeys, 1000)
	if err != nil {
		return nil, err
	}
	out := &s3.ListObjectVersionsOutput{
		Name:            in.Bucket,
		Prefix:          in.Prefix,
		KeyMarker:       in.KeyMarker,
		VersionIdMarker: in.VersionIdMarker,
		IsTruncated:     aws.Bool(next != nil),
	}
	for _, o := range part {
		out.Versions = append(out.Versions, types.ObjectVersion{
			Key: aws.String(o.Key), ETag: aws.String(o.ETag), Size: aws.Int64(int64(len(o.Body))), LastModified: aws.Time(o.Modified),
			IsLatest: aws.Bool(true), VersionId: aws.String(nullVersion), StorageClass: types.ObjectVersionStorageClassStandard,
		})
	}
	if next != nil {
		out.NextKeyMarker, out.NextVersionIdMarker = aws.String(part[len(part)-1].Key), aws.String(nullVersion)
	}
	return out, nil
}

func (svc *Service) deleteObject(in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	b, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if in.VersionId != nil && *in.VersionId != nullVersion {
		return nil, core.Fail("InvalidArgument", "invalid version id specified")
	}
	delete(b.Objects, aws.ToString(in.Key)) // not an error if it does not exist
	return &s3.DeleteObjectOutput{}, nil
}

func (svc *Service) deleteObjects(in *s3.DeleteObjectsInput) (*s3.DeleteObjectsOutput, error) {
	b, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if in.Delete == nil || len(in.Delete.Objects) == 0 || len(in.Delete.Objects) > 1000 {
		return nil, core.Fail("MalformedXML", "1 to 1000 keys must be given")
	}
	out := &s3.DeleteObjectsOutput{}
	for _, id := range in.Delete.Objects {
		if err := core.Only("DeleteObjects", &id, "Key", "VersionId"); err != nil {
			return nil, err
		}
		action := "s3:DeleteObject"
		if id.VersionId != nil {
			action = "s3:DeleteObjectVersion"
		}
		if err := b.denied(action); err != nil {
			out.Errors = append(out.Errors, types.Error{Key: id.Key, VersionId: id.VersionId, Code: aws.String("AccessDenied"), Message: aws.String(err.Error())})
			continue
		}
		if id.VersionId != nil && *id.VersionId != nullVersion {
			out.Errors = append(
				out.Errors,
				types.Error{Key: id.Key, VersionId: id.VersionId, Code: aws.String("NoSuchVersion"), Message: aws.String("The specified version does not exist.")},
			)
			continue
		}
		delete(b.Objects, aws.ToString(id.Key))
		if !aws.ToBool(in.Delete.Quiet) {
			out.Deleted = append(out.Deleted, types.DeletedObject{Key: id.Key, VersionId: id.VersionId})
		}
	}
	return out, nil
}

// Inventory lists the buckets and their objects.
func (svc *Service) Inventory() (lines []string) {
	for _, b := range svc.state.Buckets {
		lines = append(lines, "Bucket "+b.Name)
		for key := range b.Objects {
			lines = append(lines, "Object "+b.Name+"/"+key)
		}
	}
	slices.Sort(lines)
	return lines
}

// Detailed is Inventory with attributes, without the bodies of objects.
func (svc *Service) Detailed() (lines []string) {
	for _, b := range svc.state.Buckets {
		var rules []string
		for _, r := range b.Rules {
			rules = append(rules, core.LineOf(r.ID, "prefix", r.Prefix, "days", strconv.Itoa(int(r.Days)), "enabled", strconv.FormatBool(r.Enabled)))
		}
		lines = append(lines, core.LineOf("Bucket "+b.Name, "policy", b.Policy, "lifecycle", strings.Join(rules, ";"), "tags", core.Flat(b.Tags)))
		for _, o := range b.Objects {
			lines = append(lines, core.LineOf("Object "+b.Name+"/"+o.Key, "encryption", o.Encryption, "type", o.ContentType, "metadata", core.Flat(o.Metadata)))
		}
	}
	slices.Sort(lines)
	return lines
}
