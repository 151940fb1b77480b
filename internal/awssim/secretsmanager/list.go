package secretsmanager

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

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
	return core.WriteTags(s.Tags, func(k, v *string) types.Tag { return types.Tag{Key: k, Value: v} })
}

// deletion is when a secret is to be deleted, and nil when it is not.
func (s *Secret) deletion() *time.Time {
	if s.Asked.IsZero() {
		return nil
	}
	return aws.Time(s.Gone)
}

func (svc *Service) describeSecret(in *secrets.DescribeSecretInput) (*secrets.DescribeSecretOutput, error) {
	s, err := svc.anySecret(in.SecretId)
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
			return false, core.NotSimulated("ListSecrets: filter %s", f.Key)
		}
		if len(f.Values) == 0 || len(f.Values) > 10 {
			return false, invalid("A filter has 1 to 10 values.")
		}
		ok := false
		for _, want := range f.Values {
			if strings.HasPrefix(want, "!") {
				return false, core.NotSimulated("ListSecrets: negation in a filter")
			}
			ok = ok || slices.ContainsFunc(have, func(h string) bool { return strings.HasPrefix(h, want) })
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

func (svc *Service) listSecrets(in *secrets.ListSecretsInput) (*secrets.ListSecretsOutput, error) {
	if n := in.MaxResults; n != nil && (*n < 1 || *n > 100) {
		return nil, invalid("MaxResults must be between 1 and 100.")
	}
	var list []types.SecretListEntry
	for _, s := range svc.allSecrets() {
		ok, err := secretMatches(s, in.Filters)
		if err != nil {
			return nil, err
		}
		if !ok || !svc.Visible(s.Born) || !s.Asked.IsZero() && !aws.ToBool(in.IncludePlannedDeletion) {
			continue
		}
		list = append(list, types.SecretListEntry{
			ARN: aws.String(s.ARN), Name: aws.String(s.Name), CreatedDate: aws.Time(s.Born), LastChangedDate: aws.Time(s.Changed),
			DeletedDate: s.deletion(), Tags: s.showTags(), SecretVersionsToStages: s.stages(),
		})
	}
	part, next, err := core.Page(svc.Account, list, in.NextToken, in.MaxResults, 100)
	return &secrets.ListSecretsOutput{SecretList: part, NextToken: next}, err
}

func (svc *Service) deleteSecret(in *secrets.DeleteSecretInput) (*secrets.DeleteSecretOutput, error) {
	force := aws.ToBool(in.ForceDeleteWithoutRecovery)
	days := int64(30)
	core.Set(&days, in.RecoveryWindowInDays)
	if force && in.RecoveryWindowInDays != nil {
		return nil, invalid("You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.")
	}
	if days < 7 || days > 30 {
		return nil, invalid("The RecoveryWindowInDays value must be between 7 and 30 days (inclusive).")
	}
	s, err := svc.anySecret(in.SecretId)
	if err != nil && force {
		// Nothing to delete is no error then, and says the name it was given.
		return &secrets.DeleteSecretOutput{Name: in.SecretId, DeletionDate: aws.Time(svc.Now())}, nil
	}
	if err != nil {
		return nil, err
	}
	if !force && !s.Asked.IsZero() {
		return nil, &types.InvalidRequestException{Message: aws.String("You tried to perform the operation on a secret that's currently marked deleted.")}
	}
	s.Asked, s.Gone = svc.Now(), svc.Now().Add(time.Duration(days)*24*time.Hour)
	if force {
		// The deletion is asynchronous: the name may not be free at once.
		s.Gone = svc.Now().Add(svc.Lag)
	}
	return &secrets.DeleteSecretOutput{ARN: aws.String(s.ARN), Name: aws.String(s.Name), DeletionDate: aws.Time(s.Gone)}, nil
}

func (svc *Service) tagSecret(in *secrets.TagResourceInput) (*secrets.TagResourceOutput, error) {
	s, err := svc.secret(in.SecretId)
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

func (svc *Service) untagSecret(in *secrets.UntagResourceInput) (*secrets.UntagResourceOutput, error) {
	s, err := svc.secret(in.SecretId)
	if err != nil {
		return nil, err
	}
	for _, k := range in.TagKeys {
		delete(s.Tags, k)
	}
	return &secrets.UntagResourceOutput{}, nil
}

// Inventory lists the secrets that are not to be deleted.
func (svc *Service) Inventory() (lines []string) {
	for _, s := range svc.allSecrets() {
		if s.Asked.IsZero() {
			lines = append(lines, "Secret "+s.Name)
		}
	}
	return lines
}

// Detailed is Inventory with what the secrets are like. The
// random parts of names are left out, and so are the values.
func (svc *Service) Detailed() (lines []string) {
	uuid := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	for _, s := range svc.allSecrets() {
		if !s.Asked.IsZero() {
			continue
		}
		lines = append(lines, core.LineOf("Secret "+uuid.ReplaceAllString(s.Name, "<uuid>"), "description", s.Description, "versions", strconv.Itoa(len(s.Versions)), "tags", core.Flat(s.Tags)))
	}
	slices.Sort(lines)
	return lines
}

// Tagged lists the secrets.
func (svc *Service) Tagged() (all []core.Tagged) {
	for _, s := range svc.allSecrets() {
		all = append(all, core.Tagged{ARN: s.ARN, Tags: s.Tags, Born: s.Born})
	}
	return all
}
