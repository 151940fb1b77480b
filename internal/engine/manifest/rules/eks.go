package rules

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	"sigs.k8s.io/yaml"

	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Rules of EKS for names, ARNs and texts, from the operations in its API reference: CreateCluster,
// CreateAccessEntry, AssociateAccessPolicy, CreateAddon and AssociateIdentityProviderConfig.

// checkEKSNames checks what an EKS control plane names.
func (c *checks) checkEKSNames(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	o := c.infra
	for i, e := range plane.AccessEntries {
		path := fmt.Sprintf("spec.accessEntries[%d]", i)
		c.checkARN(o, path+".principalARN", e.PrincipalARN, principalARN())
		if strings.Contains(e.PrincipalARN, ":role/aws-service-role/") { // "Create access entries", EKS user guide
			c.fail(o.Problem(path+".principalARN", "EKS takes no access entry for a service-linked role", "remove the entry: the service that has the role creates it"))
		}
		c.checkEntryType(path, e)
		c.checkIdentityNames(o, path, "username", e.Username, "kubernetesGroups", e.KubernetesGroups)
		for k, p := range e.AccessPolicies {
			c.checkARN(o, fmt.Sprintf("%s.accessPolicies[%d].policyARN", path, k), p.PolicyARN, accessPolicyARN())
		}
	}
	if config := plane.IAMAuthenticatorConfig; config != nil {
		for i, m := range config.RoleMappings {
			if strings.Contains(m.RoleARN, ":role/") { // otherwise reported already
				c.checkARN(o, fmt.Sprintf("spec.iamAuthenticatorConfig.mapRoles[%d].rolearn", i), m.RoleARN, roleARN())
			}
		}
		for i, m := range config.UserMappings {
			if strings.Contains(m.UserARN, ":user/") {
				c.checkARN(o, fmt.Sprintf("spec.iamAuthenticatorConfig.mapUsers[%d].userarn", i), m.UserARN, userARN())
			}
		}
	}
	c.checkEncryption(o, plane.EncryptionConfig)
	if plane.Addons != nil {
		for i, a := range *plane.Addons {
			c.checkAddon(o, fmt.Sprintf("spec.addons[%d]", i), a)
		}
	}
	c.checkRolePolicies(o, plane.RoleAdditionalPolicies, plane.RolePermissionsBoundary)
	c.checkIssuer(o, plane.OIDCIdentityProviderConfig)
}

// checkEncryption checks the key of an EKS cluster, and what it encrypts (EncryptionConfig, EKS API reference).
func (c *checks) checkEncryption(o *manifest.Entry, config *ekscontrolplanev1.EncryptionConfig) {
	if config == nil || manifest.Deref(config.Provider) == "" {
		return
	}
	if provider := *config.Provider; strings.HasPrefix(provider, "alias/") {
		c.fail(o.Problem(
			"spec.encryptionConfig.provider",
			fmt.Sprintf("%q is not an ARN", provider),
			"write the ARN of the alias: arn:"+manifest.PartitionOf(c.cluster.Region)+":kms:"+c.cluster.Region+":ACCOUNT:"+provider,
		))
	} else {
		c.checkARN(o, "spec.encryptionConfig.provider", provider, keyARN())
	}
	for i, r := range config.Resources {
		if manifest.Deref(r) != "secrets" {
			c.fail(o.Problem(fmt.Sprintf("spec.encryptionConfig.resources[%d]", i), fmt.Sprintf("EKS does not encrypt %q", manifest.Deref(r)), "write secrets"))
		}
	}
}

// reservedNames are the beginnings of names that EKS keeps for itself: "Create access entries" in the
// EKS user guide.
func reservedNames() []string { return []string{"system:", "eks:", "aws:", "amazon:", "iam:"} }

func (c *checks) checkIdentityNames(o *manifest.Entry, path, userField, user, groupField string, groups []string) {
	const fix = "choose another name, or associate an access policy such as AmazonEKSClusterAdminPolicy"
	for _, prefix := range reservedNames() {
		if strings.HasPrefix(user, prefix) {
			c.fail(o.Problem(path+"."+userField, fmt.Sprintf("%q: EKS reserves user names that begin with %s", user, prefix), "choose another name, or remove it"))
		}
		for i, g := range groups {
			if strings.HasPrefix(g, prefix) {
				c.fail(o.Problem(fmt.Sprintf("%s.%s[%d]", path, groupField, i), fmt.Sprintf("%q: EKS reserves names of groups that begin with %s", g, prefix), fix))
			}
		}
	}
}

// checkAddon checks an add-on. EKS compares its configuration with a schema, so it has to be one of
// JSON or YAML.
func (c *checks) checkAddon(o *manifest.Entry, path string, a ekscontrolplanev1.Addon) {
	if a.ServiceAccountRoleArn != nil {
		c.checkARN(o, path+".serviceAccountRoleARN", *a.ServiceAccountRoleArn, roleARN())
		if *a.ServiceAccountRoleArn != "" && !c.cluster.EKS.ControlPlane.Spec.AssociateOIDCProvider { // "IAM roles for Amazon EKS add-ons", EKS user guide
			c.warn(o.Problem(
				path+".serviceAccountRoleARN",
				"nothing in the manifest makes the OIDC provider of the cluster in IAM, without which the pods of the add-on cannot use the role",
				"set spec.associateOIDCProvider: true, or use the annotation "+manifest.OwnAnnotations+manifest.AnnotationAddonPodIdentities,
			))
		}
	}
	if !regex.Of(`^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$`).MatchString(a.Name) {
		c.fail(
			o.Problem(
				path+".name",
				fmt.Sprintf("%q is not the name of an add-on", a.Name),
				"list them with: clusterawsadm eks addons list-available, or aws eks describe-addon-versions",
			),
		)
	}
	if a.Version == "" {
		c.warn(o.Problem(path, "has no version: EKS takes its default version, and no run changes it", "set version"))
	}
	if a.Configuration == "" {
		return
	}
	var content map[string]any
	if err := yaml.Unmarshal([]byte(a.Configuration), &content); err != nil {
		if !json.Valid([]byte(a.Configuration)) {
			c.fail(o.Problem(path+".configuration", "is neither an object of JSON nor a mapping of YAML", "correct the text"))
		}
	}
}

// checkRolePolicies checks policies of a role that the run creates.
func (c *checks) checkRolePolicies(o *manifest.Entry, policies *[]string, boundary string) {
	if policies != nil {
		for i, arn := range *policies {
			c.checkARN(o, fmt.Sprintf("spec.roleAdditionalPolicies[%d]", i), arn, policyARN())
		}
	}
	c.checkARN(o, "spec.rolePermissionsBoundary", boundary, policyARN())
}

// checkIssuer checks an identity provider: OidcIdentityProviderConfigRequest in the EKS API reference.
func (c *checks) checkIssuer(o *manifest.Entry, config *ekscontrolplanev1.OIDCIdentityProviderConfig) {
	if config == nil {
		return
	}
	const path = "spec.oidcIdentityProviderConfig"
	for _, x := range []struct{ field, value string }{{".clientId", config.ClientID}, {".identityProviderConfigName", config.IdentityProviderConfigName}} {
		if x.value == "" {
			c.fail(o.Problem(path+x.field, "is missing, and EKS needs it", "set it"))
		}
	}
	for _, x := range []struct {
		field string
		value *string
	}{{".usernamePrefix", config.UsernamePrefix}, {".groupsPrefix", config.GroupsPrefix}} { // AWS::EKS::IdentityProviderConfig, CloudFormation
		if strings.Contains(manifest.Deref(x.value), "system:") {
			c.fail(o.Problem(path+x.field, fmt.Sprintf("%q: a prefix cannot contain system:, which is for Kubernetes", *x.value), "choose another one, such as oidc:"))
		}
	}
	u, err := url.Parse(config.IssuerURL)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		c.fail(
			o.Problem(
				path+".issuerUrl",
				fmt.Sprintf("%q is not a URL that begins with https://", config.IssuerURL),
				"write the issuer of the tokens, such as https://login.example.com",
			),
		)
	}
	if err == nil && u.RawQuery+u.Fragment != "" {
		c.fail(o.Problem(path+".issuerUrl", fmt.Sprintf("%q: an issuer has no query and no fragment", config.IssuerURL), "remove what follows ? or #"))
	}
	if err == nil && u.Host != "" && isPrivateHost(u.Hostname()) { // "must be publicly accessible": OidcIdentityProviderConfigRequest, EKS API reference
		c.fail(o.Problem(path+".issuerUrl", u.Hostname()+" is not in the internet, from which EKS reads the keys of the issuer", "use an issuer that is"))
	}
	if n := utf8.RuneCountInString(config.IdentityProviderConfigName); n > longestTagValue {
		c.fail(
			o.Problem(
				path+".identityProviderConfigName",
				fmt.Sprintf("the name has %d characters: it is the value of a tag, which has %d", n, longestTagValue),
				"shorten it",
			),
		)
	}
	c.checkEKSTags(o, path+".tags", config.Tags)
}

// longestTagValue is how many characters the value of a tag has.
const longestTagValue = 256

// checkEKSTags checks tags that CAPA's webhooks do not.
func (c *checks) checkEKSTags(o *manifest.Entry, path string, tags map[string]string) {
	if len(tags) > mostTags-ownSubnetTags {
		c.fail(o.Problem(path, fmt.Sprintf("%d tags: AWS permits %d, and some are of this program", len(tags), mostTags), "remove some"))
	}
	c.checkTagTexts(o, path, tags)
}

// checkTagTexts checks the names and values of tags.
func (c *checks) checkTagTexts(o *manifest.Entry, path string, tags map[string]string) {
	for key, value := range tags {
		switch {
		case utf8.RuneCountInString(key) > longestTagKey || utf8.RuneCountInString(value) > longestTagValue:
			c.fail(
				o.Problem(path+"."+key, fmt.Sprintf("AWS permits %d characters in the name of a tag, and %d in its value", longestTagKey, longestTagValue), "shorten it"),
			)
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			c.fail(o.Problem(path+"."+key, "AWS reserves tags whose names begin with aws:", "choose another name"))
		case !tagText(key) || !tagText(value):
			c.fail(o.Problem(path+"."+key, "AWS permits letters, digits, spaces and _.:/=+-@ in tags", "change it"))
		}
	}
}

func tagText(s string) bool {
	return regex.Of(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$`).MatchString(s)
}

// mostHooks is the number of lifecycle hooks that an Auto Scaling group can have (Amazon EC2 Auto Scaling
// user guide: Quotas for Auto Scaling resources and groups).
const mostHooks = 50

// checkHooks checks the lifecycle hooks of a pool (Amazon EC2 Auto Scaling API: PutLifecycleHook).
func (c *checks) checkHooks(o *manifest.Entry, hooks []expinfrav1.AWSLifecycleHook) {
	const path = "spec.lifecycleHooks"
	if len(hooks) > mostHooks {
		c.fail(o.Problem(path, fmt.Sprintf("a group has at most %d lifecycle hooks, this one has %d", mostHooks, len(hooks)), "remove some"))
	}
	for i, h := range hooks {
		at := fmt.Sprintf("%s[%d]", path, i)
		if h.Name != "" && !regex.Of(`^[A-Za-z0-9\-_/]{1,255}$`).MatchString(h.Name) {
			c.fail(
				o.Problem(at+".name", fmt.Sprintf("%q: the name of a lifecycle hook has up to 255 letters a to z, digits, and characters of -_/", h.Name), "change it"),
			)
		}
		c.warnOfAbandoning(o, at, h)
		if h.RoleARN != nil {
			c.checkARN(o, at+".roleARN", *h.RoleARN, roleARN())
		}
		if h.NotificationTargetARN != nil {
			c.checkARN(o, at+".notificationTargetARN", *h.NotificationTargetARN, targetARN(*h.NotificationTargetARN))
			// "FIFO queues and Lambda concurrency behavior", "FIFO delivery logic" in the SQS developer guide: not compatible with lifecycle hooks
			if arn := *h.NotificationTargetARN; strings.Contains(arn, ":sqs:") && strings.HasSuffix(arn, ".fifo") {
				c.fail(o.Problem(at+".notificationTargetARN", "lifecycle hooks cannot send to FIFO queues", "use a standard queue"))
			}
		}
	}
}

// warnOfAbandoning warns about a hook because of which Auto Scaling terminates each new machine, unless a program completes the hook. ABANDON is
// the default ("Default result", Amazon EC2 Auto Scaling user guide). There is no warning about a hook with a notification
// target: its manifest names who is told to complete it.
func (c *checks) warnOfAbandoning(o *manifest.Entry, at string, h expinfrav1.AWSLifecycleHook) {
	continues := h.DefaultResult != nil && *h.DefaultResult == expinfrav1.LifecycleHookDefaultResultContinue
	if h.LifecycleTransition != expinfrav1.LifecycleHookTransitionInstanceLaunching || h.NotificationTargetARN != nil || continues {
		return
	}
	c.warn(o.Problem(
		at+".defaultResult",
		"Auto Scaling terminates each new machine that no program completes the hook for, so that the pool gets none",
		"set CONTINUE, or let a program complete it that hears of it by EventBridge",
	))
}

// targetARN is the form of what a lifecycle hook notifies: an SNS topic or an SQS queue.
func targetARN(arn string) arnForm {
	service := "sqs"
	if strings.Contains(arn, ":sns:") {
		service = "sns"
	}
	return arnForm{service, `[A-Za-z0-9_.-]+`, true, "an SNS topic or an SQS queue", ":sqs:REGION:123456789012:NAME"}
}

// isPrivateHost reports whether a host is in a private network for certain: by its address, as a name of one word, or by a domain that is reserved for
// private use (RFC 6761, RFC 6762, and .internal by ICANN).
func isPrivateHost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return !ip.IsGlobalUnicast() || ip.IsPrivate()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	last := host[strings.LastIndex(host, ".")+1:]
	return last == host || slices.Contains([]string{"internal", "invalid", "local", "localhost", "test"}, last)
}
