package cloudformation

import (
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// resourceKind is a type of resource: the property with its name, the immutable
// properties, and the others.
type resourceKind struct {
	iam          string // the type's name in IAM
	name         string
	fixed, other []string
}

func (k resourceKind) has(property string) bool {
	return property == k.name || slices.Contains(k.fixed, property) || slices.Contains(k.other, property)
}

// resourceKinds are the simulated types of resources, from the schemas that AWS publishes
// (as in cfn-lint). None of them gets aws:cloudformation tags; stack tags are added to
// roles and users.
func resourceKinds() map[string]resourceKind {
	return map[string]resourceKind{
		"AWS::IAM::Role": {"role", "RoleName", []string{"Path"}, []string{
			"AssumeRolePolicyDocument", "Description", "ManagedPolicyArns", "MaxSessionDuration", "PermissionsBoundary", "Policies", "Tags",
		}},
		"AWS::IAM::ManagedPolicy":   {"policy", "ManagedPolicyName", []string{"Path", "Description"}, []string{"Groups", "PolicyDocument", "Roles", "Users"}},
		"AWS::IAM::InstanceProfile": {"instance-profile", "InstanceProfileName", []string{"Path"}, []string{"Roles"}},
		"AWS::IAM::User":            {"user", "UserName", nil, []string{"Path", "Groups", "ManagedPolicyArns", "PermissionsBoundary", "Policies", "Tags"}},
		"AWS::IAM::Group":           {"group", "GroupName", nil, []string{"Path", "ManagedPolicyArns", "Policies"}},
	}
}

// properties are the properties of a resource, with all references resolved.
type properties map[string]any

func (p properties) text(name string) string { s, _ := p[name].(string); return s }

func (p properties) texts(name string) []string { return texts(p[name]) }

// tags returns the tags of the resource and of the stack.
func (p properties) tags(stack map[string]string) map[string]string {
	m := map[string]string{}
	for k, v := range stack {
		m[k] = v
	}
	list, _ := p["Tags"].([]any)
	for _, x := range list {
		if t, ok := x.(map[string]any); ok {
			key, _ := t["Key"].(string)
			m[key], _ = t["Value"].(string)
		}
	}
	return m
}

// policies returns the inline policies by name.
func (p properties) policies() map[string]string {
	m := map[string]string{}
	list, _ := p["Policies"].([]any)
	for _, x := range list {
		if t, ok := x.(map[string]any); ok {
			name, _ := t["PolicyName"].(string)
			m[name] = canonical(t["PolicyDocument"])
		}
	}
	return m
}

// resourceFailure formats an error like CloudFormation's resource handlers, without the
// request ID at its end.
func resourceFailure(err error) string {
	message := err.Error()
	if _, rest, found := strings.Cut(message, ": "); found {
		message = rest
	}
	return "Resource handler returned message: \"" + message + " (Service: Iam)\""
}

// create creates a resource. The physical ID is "" if nothing was created.
func (svc *Service) create(s *Stack, logical, kind string, p properties, at time.Time) (physical string, err error) {
	k := resourceKinds()[kind]
	for _, name := range core.SortedKeys(p) {
		if !k.has(name) {
			return "", invalid("Encountered unsupported property %s", name)
		}
	}
	name := p.text(k.name)
	if name == "" {
		name = s.Name[:min(len(s.Name), 24)] + "-" + logical[:min(len(logical), 24)] + "-" + iam.UniqueID("", logical+s.ID[len(s.ID)-12:])[:12]
	}
	switch k.iam {
	case "role":
		session, _ := p["MaxSessionDuration"].(float64)
		r := &iam.Role{
			Name: name, Path: p.text("Path"), Trust: canonical(p["AssumeRolePolicyDocument"]), Description: p.text("Description"),
			Boundary: p.text("PermissionsBoundary"), MaxSession: int32(session), Tags: p.tags(s.Tags),
		}
		if err := svc.iam.MakeRole(r, at); err != nil {
			return "", err
		}
		return name, svc.hold("PoliciesPerRole", iam.MostRoleInline, &r.Holder, "role "+name, nil, p)
	case "policy":
		policy := &iam.Policy{Name: name, Path: p.text("Path"), Description: p.text("Description")}
		if err := svc.iam.MakePolicy(policy, canonical(p["PolicyDocument"]), at); err != nil {
			return "", err
		}
		return svc.iam.PolicyARN(policy), svc.spread(svc.iam.PolicyARN(policy), nil, p)
	case "instance-profile":
		profile := &iam.InstanceProfile{Name: name, Path: p.text("Path")}
		if len(p.texts("Roles")) != 1 {
			return "", invalid("Property Roles must have exactly one element")
		}
		if err := svc.iam.MakeProfile(profile, at); err != nil {
			return "", err
		}
		return name, svc.iam.SetRole(profile, p.texts("Roles")[0])
	case "user":
		u := &iam.User{Name: name, Path: p.text("Path"), Boundary: p.text("PermissionsBoundary"), Tags: p.tags(s.Tags)}
		if err := svc.iam.MakeUser(u, at); err != nil {
			return "", err
		}
		return name, svc.updateUser(u, nil, p)
	default:
		g := &iam.Group{Name: name, Path: p.text("Path")}
		if err := svc.iam.MakeGroup(g, at); err != nil {
			return "", err
		}
		return name, svc.hold("PoliciesPerGroup", iam.MostGroupInline, &g.Holder, "group "+name, nil, p)
	}
}

// change changes a resource from one set of properties to another.
func (svc *Service) change(s *Stack, physical, kind string, old, want properties, at time.Time) error {
	switch resourceKinds()[kind].iam {
	case "role":
		r, err := svc.iam.Role(&physical)
		if err != nil {
			return err
		}
		trust := canonical(want["AssumeRolePolicyDocument"])
		if err := iam.CheckTrust(trust); err != nil {
			return err
		}
		session, _ := want["MaxSessionDuration"].(float64)
		r.Trust, r.Description, r.Boundary, r.MaxSession, r.Tags = trust, want.text(
			"Description",
		), want.text(
			"PermissionsBoundary",
		), int32(
			session,
		), want.tags(
			s.Tags,
		)
		return svc.hold("PoliciesPerRole", iam.MostRoleInline, &r.Holder, "role "+r.Name, old, want)
	case "policy":
		p, err := svc.iam.Policy(&physical)
		if err != nil {
			return err
		}
		if document := canonical(want["PolicyDocument"]); document != p.Document() {
			// CloudFormation deletes the oldest version if there are too many.
			kept := p.Versions
			if len(kept) >= iam.MostVersions {
				p.Versions = slices.DeleteFunc(slices.Clone(kept), func(v *iam.PolicyVersion) bool {
					return v == kept[0] || len(kept) > 1 && kept[0].ID == p.Default && v == kept[1]
				})
			}
			if err := svc.iam.AddVersion(p, document, at); err != nil {
				p.Versions = kept
				return err
			}
		}
		return svc.spread(physical, old, want)
	case "instance-profile":
		p, err := svc.iam.Profile(&physical)
		if err != nil || len(want.texts("Roles")) != 1 {
			return err
		}
		if p.Role != want.texts("Roles")[0] {
			p.Role = ""
			return svc.iam.SetRole(p, want.texts("Roles")[0])
		}
		return nil
	case "user":
		u, err := svc.iam.User(&physical)
		if err != nil {
			return err
		}
		u.Path, u.Boundary, u.Tags = want.text("Path"), want.text("PermissionsBoundary"), want.tags(s.Tags)
		return svc.updateUser(u, old, want)
	default:
		g, err := svc.iam.Group(&physical)
		if err != nil {
			return err
		}
		g.Path = want.text("Path")
		return svc.hold("PoliciesPerGroup", iam.MostGroupInline, &g.Holder, "group "+g.Name, old, want)
	}
}

// remove deletes a resource and the attachments in the template. Attachments that others
// have added prevent it. A resource that does not exist is not an error.
func (svc *Service) remove(physical, kind string, p properties) error {
	nothing := properties{}
	switch resourceKinds()[kind].iam {
	case "role":
		r, err := svc.iam.Role(&physical)
		if err != nil {
			return nil //nolint:nilerr // somebody else deleted it
		}
		if err := svc.hold("", iam.MostRoleInline, &r.Holder, "", p, nothing); err != nil {
			return err
		}
		return svc.iam.RemoveRole(r)
	case "policy":
		policy, err := svc.iam.Policy(&physical)
		if err != nil {
			return nil //nolint:nilerr // somebody else deleted it
		}
		if err := svc.spread(physical, p, nothing); err != nil {
			return err
		}
		policy.Versions = slices.DeleteFunc(policy.Versions, func(v *iam.PolicyVersion) bool { return v.ID != policy.Default })
		return svc.iam.RemovePolicy(policy)
	case "instance-profile":
		svc.iam.RemoveProfile(physical)
		return nil
	case "user":
		u, err := svc.iam.User(&physical)
		if err != nil {
			return nil //nolint:nilerr // somebody else deleted it
		}
		if err := svc.updateUser(u, p, nothing); err != nil {
			return err
		}
		return svc.iam.RemoveUser(u)
	default:
		g, err := svc.iam.Group(&physical)
		if err != nil {
			return nil //nolint:nilerr // somebody else deleted it
		}
		if err := svc.hold("", iam.MostGroupInline, &g.Holder, "", p, nothing); err != nil {
			return err
		}
		return svc.iam.RemoveGroup(g)
	}
}

// hold attaches the policies in the new properties, and detaches those that are only in
// the old ones.
func (svc *Service) hold(quota string, most int, h *iam.Holder, whose string, old, want properties) error {
	for _, arn := range old.texts("ManagedPolicyArns") {
		if !slices.Contains(want.texts("ManagedPolicyArns"), arn) && slices.Contains(h.Attached, arn) {
			_ = iam.Detach(h, arn) // it exists
		}
	}
	inline := want.policies()
	for name := range old.policies() {
		if _, kept := inline[name]; !kept {
			delete(h.Inline, name)
		}
	}
	for _, arn := range want.texts("ManagedPolicyArns") {
		if err := svc.iam.Attach(quota, h, arn); err != nil {
			return err
		}
	}
	for _, name := range core.SortedKeys(inline) {
		if err := h.Put(name, inline[name], whose, most); err != nil {
			return err
		}
	}
	return nil
}

// spread attaches a policy to the holders in its new properties, and detaches it from
// those that are only in the old ones.
func (svc *Service) spread(arn string, old, want properties) error {
	all := svc.iam.Holders()
	for _, of := range []struct{ property, kind, quota string }{
		{"Roles", "role", "PoliciesPerRole"}, {"Users", "user", "PoliciesPerUser"}, {"Groups", "group", "PoliciesPerGroup"},
	} {
		for _, name := range old.texts(of.property) {
			if h := all[of.kind+" "+name]; h != nil && !slices.Contains(want.texts(of.property), name) && slices.Contains(h.Attached, arn) {
				_ = iam.Detach(h, arn) // it exists
			}
		}
		for _, name := range want.texts(of.property) {
			h := all[of.kind+" "+name]
			if h == nil {
				return iam.NoEntity("The "+of.kind+" with name", name)
			}
			if err := svc.iam.Attach(of.quota, h, arn); err != nil {
				return err
			}
		}
	}
	return nil
}

func (svc *Service) updateUser(u *iam.User, old, want properties) error {
	u.Groups = slices.DeleteFunc(u.Groups, func(g string) bool { return slices.Contains(old.texts("Groups"), g) })
	for _, name := range want.texts("Groups") {
		if _, err := svc.iam.Group(&name); err != nil {
			return err
		}
		if !slices.Contains(u.Groups, name) {
			u.Groups = append(u.Groups, name)
		}
	}
	return svc.hold("PoliciesPerUser", iam.MostUserInline, &u.Holder, "user "+u.Name, old, want)
}
