package secretsmanager

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	secrets "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// State is the state of Secrets Manager.
type State struct {
	Secrets map[string]*Secret // by name
	Deleted []*Secret          // deleted without a recovery window; ListSecrets may still list them
}

// Secret is a secret with its versions.
type Secret struct {
	ARN, Name, Description string
	Versions               []*SecretVersion // oldest first
	Tags                   map[string]string
	Born, Changed          time.Time
	Asked                  time.Time // start of the deletion; zero: none
	Gone                   time.Time // end of the recovery window
}

// SecretVersion is one value of a secret.
type SecretVersion struct {
	ID     string // client request token
	Binary []byte
	String *string
	Stage  string // AWSCURRENT, AWSPREVIOUS, or "" for neither
	Born   time.Time
}

// The staging labels of versions.
const (
	stageCurrent  = "AWSCURRENT"
	stagePrevious = "AWSPREVIOUS"
)

func (svc *Service) simulate() {
	core.On(svc.Account, svc.createSecret, "Name", "ClientRequestToken", "Description", "SecretBinary", "SecretString", "Tags")
	core.On(svc.Account, svc.getSecretValue, "SecretId", "VersionId", "VersionStage")
	core.On(svc.Account, svc.putSecretValue, "SecretId", "ClientRequestToken", "SecretBinary", "SecretString")
	core.On(svc.Account, svc.updateSecret, "SecretId", "ClientRequestToken", "Description", "SecretBinary", "SecretString")
	core.On(svc.Account, svc.describeSecret, "SecretId")
	core.On(svc.Account, svc.listSecrets, "Filters", "IncludePlannedDeletion", "MaxResults", "NextToken")
	core.On(svc.Account, svc.deleteSecret, "SecretId", "ForceDeleteWithoutRecovery", "RecoveryWindowInDays")
	core.On(svc.Account, svc.tagSecret, "SecretId", "Tags")
	core.On(svc.Account, svc.untagSecret, "SecretId", "TagKeys")
}

// listLag is how long ListSecrets does not reflect changes. "ListSecrets might not reflect
// changes from the last five minutes" (API reference); here it never does, except in an
// account without any lag.
const listLag = 5 * time.Minute

// listed returns the secrets that ListSecrets lists, sorted by name: without the new ones,
// and with those that have just been deleted.
func (svc *Service) listed(planned bool) (list []*Secret) {
	recent := func(at time.Time) bool { return svc.Lag > 0 && svc.Now().Sub(at) < listLag }
	svc.state.Deleted = slices.DeleteFunc(svc.state.Deleted, func(s *Secret) bool { return !recent(s.Asked) })
	for _, s := range slices.Concat(svc.allSecrets(), svc.state.Deleted) {
		if !recent(s.Born) && (planned || s.Asked.IsZero() || recent(s.Asked)) {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b *Secret) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Compact(list) // one that is being deleted is in both lists
}

// allSecrets returns the existing secrets, sorted by name.
func (svc *Service) allSecrets() []*Secret {
	maps.DeleteFunc(svc.state.Secrets, func(_ string, s *Secret) bool { return !s.Gone.IsZero() && !svc.Now().Before(s.Gone) })
	return core.ByKey(svc.state.Secrets)
}

// anySecret returns a secret by name or ARN, including those scheduled for deletion.
func (svc *Service) anySecret(id *string) (*Secret, error) {
	for _, s := range svc.allSecrets() {
		if s.Name == aws.ToString(id) || s.ARN == aws.ToString(id) {
			return s, nil
		}
	}
	return nil, &types.ResourceNotFoundException{Message: aws.String("Secrets Manager can't find the specified secret.")}
}

// secret returns a secret by name or ARN.
func (svc *Service) secret(id *string) (*Secret, error) {
	s, err := svc.anySecret(id)
	if err == nil && !s.Asked.IsZero() {
		return nil, &types.InvalidRequestException{Message: aws.String("You can't perform this operation on the secret because it was marked for deletion.")}
	}
	return s, err
}

func invalid(why string) error {
	return &types.InvalidParameterException{Message: aws.String(why)}
}

// secretVersion creates a version of a secret; nil if there is no value.
func (svc *Service) secretVersion(token *string, binary []byte, text *string) (*SecretVersion, error) {
	switch id := aws.ToString(token); {
	case len(id) < 32 || len(id) > 64:
		return nil, invalid("ClientRequestToken must be 32-64 characters long.")
	case binary != nil && text != nil:
		return nil, invalid("You can't specify both a binary secret value and a string secret value in the same secret.")
	case binary == nil && text == nil:
		return nil, nil
	case len(binary) > 65536 || len(aws.ToString(text)) > 65536:
		return nil, invalid("The secret value is longer than 65536 bytes.")
	case len(binary)+len(aws.ToString(text)) == 0:
		// AWS may accept an empty string as "no value"; here it is rejected.
		return nil, invalid("The secret value is empty.")
	}
	return &SecretVersion{ID: *token, Binary: bytes.Clone(binary), String: text, Born: svc.Now()}, nil
}

// version returns the version with an ID, or nil.
func (s *Secret) version(id string) *SecretVersion {
	for _, v := range s.Versions {
		if v.ID == id {
			return v
		}
	}
	return nil
}

func (v *SecretVersion) like(o *SecretVersion) bool {
	return v != nil && o != nil && bytes.Equal(v.Binary, o.Binary) && aws.ToString(v.String) == aws.ToString(o.String)
}

// add makes a version the current one. A used client token is accepted if the value is
// the same.
func (s *Secret) add(v *SecretVersion) error {
	if old := s.version(v.ID); old != nil {
		if !old.like(v) {
			return &types.ResourceExistsException{
				Message: aws.String("You can't use ClientRequestToken " + v.ID + " because that value is already in use for a version of secret " + s.Name + "."),
			}
		}
		return nil
	}
	for _, o := range s.Versions {
		switch o.Stage {
		case stageCurrent:
			o.Stage = stagePrevious
		case stagePrevious:
			o.Stage = ""
		}
	}
	v.Stage = stageCurrent
	// AWS deletes versions without a label some time later; here immediately.
	s.Versions = append(slices.DeleteFunc(s.Versions, func(o *SecretVersion) bool { return o.Stage == "" }), v)
	return nil
}

func readSecretTags(old map[string]string, tags []types.Tag) (map[string]string, error) {
	rules := core.TagRules{TooMany: "InvalidParameterException", Duplicate: "InvalidParameterException", Invalid: "InvalidParameterException"}
	return core.ReadTags(rules, old, tags, func(t types.Tag) (*string, *string) { return t.Key, t.Value })
}

func (svc *Service) createSecret(in *secrets.CreateSecretInput) (*secrets.CreateSecretOutput, error) {
	name := aws.ToString(in.Name)
	if !regex.Of(`^[A-Za-z0-9/_+=.@!-]{1,512}$`).MatchString(name) {
		return nil, &types.InvalidParameterException{
			Message: aws.String("Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!"),
		}
	}
	v, err := svc.secretVersion(in.ClientRequestToken, in.SecretBinary, in.SecretString)
	if err != nil {
		return nil, err
	}
	tags, err := readSecretTags(nil, in.Tags)
	if err != nil {
		return nil, err
	}
	if old, err := svc.anySecret(&name); err == nil {
		if !old.Asked.IsZero() {
			return nil, &types.InvalidRequestException{
				Message: aws.String("You can't create this secret because a secret with this name is already scheduled for deletion."),
			}
		}
		if made := old.version(*in.ClientRequestToken); made.like(v) {
			return &secrets.CreateSecretOutput{ARN: aws.String(old.ARN), Name: aws.String(old.Name), VersionId: aws.String(made.ID)}, nil
		}
		return nil, &types.ResourceExistsException{Message: aws.String("The operation failed because the secret " + name + " already exists.")}
	}
	s := &Secret{Name: name, Description: aws.ToString(in.Description), Tags: tags, Born: svc.Now(), Changed: svc.Now(), Versions: []*SecretVersion{}}
	s.ARN = svc.RegionalARN("secretsmanager", "secret:"+name+"-"+svc.Hash()[:6])
	svc.state.Secrets[name] = s
	out := &secrets.CreateSecretOutput{ARN: aws.String(s.ARN), Name: aws.String(s.Name)}
	if v == nil {
		return out, nil
	}
	out.VersionId = aws.String(v.ID)
	return out, s.add(v)
}

func (svc *Service) getSecretValue(in *secrets.GetSecretValueInput) (*secrets.GetSecretValueOutput, error) {
	s, err := svc.secret(in.SecretId)
	if err != nil {
		return nil, err
	}
	stage := aws.ToString(in.VersionStage)
	if in.VersionId == nil {
		stage = cmp.Or(stage, stageCurrent)
	}
	for _, v := range s.Versions {
		if in.VersionId != nil && v.ID != *in.VersionId || stage != "" && v.Stage != stage {
			continue
		}
		return &secrets.GetSecretValueOutput{
			ARN: aws.String(s.ARN), Name: aws.String(s.Name), VersionId: aws.String(v.ID), VersionStages: []string{v.Stage},
			SecretBinary: bytes.Clone(v.Binary), SecretString: v.String, CreatedDate: aws.Time(v.Born),
		}, nil
	}
	return nil, &types.ResourceNotFoundException{Message: aws.String("Secrets Manager can't find the specified secret value for staging label: " + stage)}
}

func (svc *Service) putSecretValue(in *secrets.PutSecretValueInput) (*secrets.PutSecretValueOutput, error) {
	s, err := svc.secret(in.SecretId)
	if err != nil {
		return nil, err
	}
	v, err := svc.secretVersion(in.ClientRequestToken, in.SecretBinary, in.SecretString)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, invalid("You must provide either SecretString or SecretBinary.")
	}
	if err := s.add(v); err != nil {
		return nil, err
	}
	s.Changed = svc.Now()
	return &secrets.PutSecretValueOutput{
		ARN:           aws.String(s.ARN),
		Name:          aws.String(s.Name),
		VersionId:     aws.String(v.ID),
		VersionStages: []string{s.version(v.ID).Stage},
	}, nil
}

func (svc *Service) updateSecret(in *secrets.UpdateSecretInput) (*secrets.UpdateSecretOutput, error) {
	s, err := svc.secret(in.SecretId)
	if err != nil {
		return nil, err
	}
	v, err := svc.secretVersion(in.ClientRequestToken, in.SecretBinary, in.SecretString)
	if err != nil {
		return nil, err
	}
	out := &secrets.UpdateSecretOutput{ARN: aws.String(s.ARN), Name: aws.String(s.Name)}
	if v != nil {
		if err := s.add(v); err != nil {
			return nil, err
		}
		out.VersionId = aws.String(v.ID)
	}
	core.Set(&s.Description, in.Description)
	s.Changed = svc.Now()
	return out, nil
}

// Secret returns the secret with that name, or nil.
func (svc *Service) Secret(name string) *Secret { return svc.state.Secrets[name] }

// RemoveSecret deletes a secret without a recovery window.
func (svc *Service) RemoveSecret(name string) { delete(svc.state.Secrets, name) }

// stages returns the versions with a staging label.
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

// deletion returns when a secret is deleted; nil if it is not scheduled.
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

// secretMatches reports whether a secret matches the filters: one value each, as a prefix
// of the name, a tag key or a tag value.
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
	for _, s := range svc.listed(aws.ToBool(in.IncludePlannedDeletion)) {
		ok, err := secretMatches(s, in.Filters)
		if err != nil {
			return nil, err
		}
		if !ok {
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
		// Then a secret that does not exist is not an error, and the answer has the name
		// from the call.
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
		// The deletion is asynchronous: the name may not be available immediately.
		s.Gone = svc.Now().Add(svc.Lag)
		svc.state.Deleted = append(svc.state.Deleted, s)
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

// Inventory lists the secrets that are not scheduled for deletion.
func (svc *Service) Inventory() (lines []string) {
	for _, s := range svc.allSecrets() {
		if s.Asked.IsZero() {
			lines = append(lines, "Secret "+s.Name)
		}
	}
	return lines
}

// Detailed is Inventory with attributes, without the random parts of names and without
// values.
func (svc *Service) Detailed() (lines []string) {
	uuid := regex.Of(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	for _, s := range svc.allSecrets() {
		if !s.Asked.IsZero() {
			continue
		}
		lines = append(
			lines,
			core.LineOf(
				"Secret "+uuid.ReplaceAllString(s.Name, "<uuid>"),
				"description",
				s.Description,
				"versions",
				strconv.Itoa(len(s.Versions)),
				"tags",
				core.Flat(s.Tags),
			),
		)
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
