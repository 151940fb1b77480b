package iam

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Holder is a role, a user or a group: an object with permissions.
type Holder struct {
	Attached []string          // ARNs of managed policies, in order of attachment
	Inline   map[string]string // documents by name
}

// mostAttached is the default quota of managed policies attached to a role, a user or a
// group.
const mostAttached = 10

// Holders returns everything that policies can be attached to, by kind and name.
func (svc *Service) Holders() map[string]*Holder {
	all := map[string]*Holder{}
	for _, r := range svc.state.Roles {
		all["role "+r.Name] = &r.Holder
	}
	for _, u := range svc.state.Users {
		all["user "+u.Name] = &u.Holder
	}
	for _, g := range svc.state.Groups {
		all["group "+g.Name] = &g.Holder
	}
	return all
}

// holder returns the role, the user or the group with a name; kind says which.
func (svc *Service) holder(kind string, name *string) (*Holder, error) {
	if h := svc.Holders()[kind+" "+aws.ToString(name)]; h != nil {
		return h, nil
	}
	return nil, NoEntity("The "+kind+" with name", aws.ToString(name))
}

// holding lists what a policy is attached to.
func (svc *Service) holding(arn string) (names []string) {
	all := svc.Holders()
	for _, name := range core.SortedKeys(all) {
		if slices.Contains(all[name].Attached, arn) {
			names = append(names, name)
		}
	}
	return names
}

// Attach attaches a managed policy. It is idempotent.
func (svc *Service) Attach(quota string, h *Holder, arn string) error {
	switch {
	case !svc.policyExists(arn):
		return &types.NoSuchEntityException{Message: aws.String("Policy " + arn + " does not exist or is not attachable.")}
	case slices.Contains(h.Attached, arn):
		return nil
	case len(h.Attached) >= mostAttached:
		return limitExceeded(quota, strconv.Itoa(mostAttached))
	}
	h.Attached = append(h.Attached, arn)
	return nil
}

// attach handles AttachRolePolicy, AttachUserPolicy and AttachGroupPolicy.
func (svc *Service) attach(kind string, name, arn *string) error {
	h, err := svc.holder(kind, name)
	if err != nil {
		return err
	}
	return svc.Attach("PoliciesPer"+strings.ToUpper(kind[:1])+kind[1:], h, aws.ToString(arn))
}

// Detach detaches a managed policy.
func Detach(h *Holder, arn string) error {
	if !slices.Contains(h.Attached, arn) {
		return &types.NoSuchEntityException{Message: aws.String("Policy " + arn + " was not found.")}
	}
	h.Attached = slices.DeleteFunc(h.Attached, func(x string) bool { return x == arn })
	return nil
}

// detach handles DetachRolePolicy, DetachUserPolicy and DetachGroupPolicy.
func (svc *Service) detach(kind string, name, arn *string) error {
	h, err := svc.holder(kind, name)
	if err != nil {
		return err
	}
	return Detach(h, aws.ToString(arn))
}

// attached returns a page of the managed policies of a holder whose paths begin with a prefix.
func (svc *Service) attached(kind string, name, prefix, marker *string, size *int32) ([]types.AttachedPolicy, *string, error) {
	h, err := svc.holder(kind, name)
	if err != nil {
		return nil, nil, err
	}
	var list []types.AttachedPolicy
	for _, arn := range h.Attached {
		_, path, _ := strings.Cut(arn, ":policy")
		if strings.HasPrefix(path, aws.ToString(prefix)) {
			list = append(list, types.AttachedPolicy{PolicyArn: aws.String(arn), PolicyName: aws.String(arn[strings.LastIndex(arn, "/")+1:])})
		}
	}
	return core.Page(svc.Account, list, marker, size, 100)
}

// Put sets an inline policy.
func (h *Holder) Put(name, document, whose string, most int) error {
	if err := checkName("policyName", name, "", 128); err != nil {
		return err
	}
	if err := checkPolicy(document); err != nil {
		return err
	}
	total := size(document)
	for other, d := range h.Inline {
		if other != name {
			total += size(d)
		}
	}
	if total > most {
		return &types.LimitExceededException{Message: aws.String("Maximum policy size of " + strconv.Itoa(most) + " bytes exceeded for " + whose)}
	}
	core.Fill(&h.Inline)
	h.Inline[name] = document
	return nil
}

// checkEmpty returns an error if a holder still has policies, which prevents its deletion.
func (h *Holder) checkEmpty() error {
	switch {
	case len(h.Attached) > 0:
		return deleteConflict("entity, must detach all policies first.")
	case len(h.Inline) > 0:
		return deleteConflict("entity, must delete policies first.")
	}
	return nil
}
