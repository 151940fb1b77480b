package awssim

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	secrets "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
)

// stages are the versions that have one.
func (s *Secret) stages() map[string][]string {
	m := map[string][]string{}
	for _, v := range s.Versions {
		m[v.ID] = []string{v.Stage}
	}
	return m
}

func (s *Secret) showTags() []types.Tag {
	return writeTags(s.Tags, func(k, v *string) types.Tag { return types.Tag{Key: k, Value: v} })
}

// deletion is when a secret is to be deleted, and nil when it is not.
func (s *Secret) deletion() *time.Time {
	if s.Asked.IsZero() {
		return nil
	}
	return aws.Time(s.Gone)
}

func (a *AWS) describeSecret(in *secrets.DescribeSecretInput) (*secrets.DescribeSecretOutput, error) {
	s, err := a.anySecret(in.SecretId)
	if err != nil {
		return nil, err
	}
	out := &secrets.DescribeSecretOutput{
		ARN: aws.String(s.ARN), Name: aws.String(s.Name), CreatedDate: aws.Time(s.Born), LastChangedDate: aws.Time(s.Changed),
		DeletedDate: s.deletion(), Tags: s.showTags(), VersionIdsToStages: s.stages(),
	}
	if s.Description != "" {
		out.Description = aws.String(s.Description)
	}
	return out, nil
}

// secretMatches reports whether a secret passes the filters of a call: one
// value of each, as the beginning of a name, a tag key or a tag value.
func secretMatches(s *Secret, filters []types.Filter) (bool, error) {
	for _, f := range filters {
		var have []string
		switch string(f.Key) {
		case string(types.FilterNameStringTypeName):
			have = []string{s.Name}
		case string(types.FilterNameStringTypeTagKey):
			have = slices.Collect(maps.Keys(s.Tags))
		case string(types.FilterNameStringTypeTagValue):
			have = slices.Collect(maps.Values(s.Tags))
		default:
			return false, notSimulated("ListSecrets: filter %s", f.Key)
		}
		if len(f.Values) == 0 || len(f.Values) > 10 {
			return false, invalidSecret("A filter has 1 to 10 values.")
		}
		ok := false
		for _, want := range f.Values {
			if strings.HasPrefix(want, "!") {
				return false, notSimulated("ListSecrets: negation in a filter")
			}
			ok = ok || slices.ContainsFunc(have, func(h string) bool { return strings.HasPrefix(h, want) })
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

func (a *AWS) listSecrets(in *secrets.ListSecretsInput) (*secrets.ListSecretsOutput, error) {
	if n := in.MaxResults; n != nil && (*n < 1 || *n > 100) {
		return nil, invalidSecret("MaxResults must be between 1 and 100.")
	}
	var list []types.SecretListEntry
	for _, s := range a.allSecrets() {
		ok, err := secretMatches(s, in.Filters)
		if err != nil {
			return nil, err
		}
		if !ok || !a.visible(s.Born) || !s.Asked.IsZero() && !aws.ToBool(in.IncludePlannedDeletion) {
			continue
		}
		list = append(list, types.SecretListEntry{
			ARN: aws.String(s.ARN), Name: aws.String(s.Name), CreatedDate: aws.Time(s.Born), LastChangedDate: aws.Time(s.Changed),
			DeletedDate: s.deletion(), Tags: s.showTags(), SecretVersionsToStages: s.stages(),
		})
	}
	part, next, err := page(a, list, in.NextToken, in.MaxResults, 100)
	return &secrets.ListSecretsOutput{SecretList: part, NextToken: next}, err
}

func (a *AWS) deleteSecret(in *secrets.DeleteSecretInput) (*secrets.DeleteSecretOutput, error) {
	force := aws.ToBool(in.ForceDeleteWithoutRecovery)
	days := int64(30)
	set(&days, in.RecoveryWindowInDays)
	if force && in.RecoveryWindowInDays != nil {
		return nil, invalidSecret("You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.")
	}
	if days < 7 || days > 30 {
		return nil, invalidSecret("The RecoveryWindowInDays value must be between 7 and 30 days (inclusive).")
	}
	s, err := a.anySecret(in.SecretId)
	if err != nil && force {
		// Nothing to delete is no error then, and says the name it was given.
		return &secrets.DeleteSecretOutput{Name: in.SecretId, DeletionDate: aws.Time(a.now())}, nil
	}
	if err != nil {
		return nil, err
	}
	if !force && !s.Asked.IsZero() {
		return nil, &types.InvalidRequestException{Message: aws.String("You tried to perform the operation on a secret that's currently marked deleted.")}
	}
	s.Asked, s.Gone = a.now(), a.now().Add(time.Duration(days)*24*time.Hour)
	if force {
		// The deletion is asynchronous: the name may not be free at once.
		s.Gone = a.now().Add(a.o.Lag)
	}
	return &secrets.DeleteSecretOutput{ARN: aws.String(s.ARN), Name: aws.String(s.Name), DeletionDate: aws.Time(s.Gone)}, nil
}

func (a *AWS) tagSecret(in *secrets.TagResourceInput) (*secrets.TagResourceOutput, error) {
	s, err := a.secret(in.SecretId)
	if err != nil {
		return nil, err
	}
	tags, err := readSecretTags(s.Tags, in.Tags)
	if err != nil {
		return nil, err
	}
	s.Tags = tags
	return &secrets.TagResourceOutput{}, nil
}

func (a *AWS) untagSecret(in *secrets.UntagResourceInput) (*secrets.UntagResourceOutput, error) {
	s, err := a.secret(in.SecretId)
	if err != nil {
		return nil, err
	}
	for _, k := range in.TagKeys {
		delete(s.Tags, k)
	}
	return &secrets.UntagResourceOutput{}, nil
}

// inventorySecrets lists the secrets that are not to be deleted.
func (a *AWS) inventorySecrets() (lines []string) {
	for _, s := range a.allSecrets() {
		if s.Asked.IsZero() {
			lines = append(lines, "Secret "+s.Name)
		}
	}
	return lines
}

// detailedSecrets is inventorySecrets with what the secrets are like. The
// random parts of names are left out, and so are the values.
func (a *AWS) detailedSecrets() (lines []string) {
	uuid := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	for _, s := range a.allSecrets() {
		if !s.Asked.IsZero() {
			continue
		}
		lines = append(lines, lineOf("Secret "+uuid.ReplaceAllString(s.Name, "<uuid>"), "description", s.Description, "versions", strconv.Itoa(len(s.Versions)), "tags", flat(s.Tags)))
	}
	slices.Sort(lines)
	return lines
}

// secretsTagged lists the secrets.
func (a *AWS) secretsTagged() (all []Tagged) {
	for _, s := range a.allSecrets() {
		all = append(all, Tagged{ARN: s.ARN, Tags: s.Tags, Born: s.Born})
	}
	return all
}
