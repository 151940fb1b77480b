package configfile

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/apis/audit"
	auditvalidation "k8s.io/apiserver/pkg/apis/audit/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	tracing "k8s.io/component-base/tracing/api/v1"
	podsecurity "k8s.io/pod-security-admission/admission/api"
	podsecurityvalidation "k8s.io/pod-security-admission/admission/api/validation"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/components"
)

// auditPolicy is LoadPolicyFromBytes in k8s.io/apiserver/pkg/audit/policy.
func (r *reader) auditPolicy(obj runtime.Object) {
	policy, ok := obj.(*audit.Policy)
	if !ok {
		return
	}
	r.refuseAll(auditvalidation.ValidatePolicy(policy))
	if len(policy.Rules) == 0 {
		r.refuse("add a rule, or remove audit-policy-file", "it has 0 rules")
	}
}

// encryption is loadConfig in k8s.io/apiserver/pkg/server/options/encryptionconfig.
func (r *reader) encryption(obj runtime.Object) {
	config, ok := obj.(*apiserver.EncryptionConfiguration)
	if !ok {
		return
	}
	r.refuseAll(validation.ValidateEncryptionConfiguration(config, false))
	for _, of := range config.Resources {
		for _, p := range of.Providers {
			// KMSv1 is off by default since 1.29.
			if p.KMS != nil && p.KMS.APIVersion == "v1" && r.Minor > 28 && !strings.Contains(r.Gates, "KMSv1=true") {
				r.refuse(
					"set apiVersion: v2 of the provider, or the feature gate",
					"the provider kms %s has the apiVersion v1, which needs the feature gate KMSv1",
					p.KMS.Name,
				)
			}
		}
	}
}

// authentication is ValidateAuthenticationConfiguration, without the issuers of service accounts.
func (r *reader) authentication(obj runtime.Object) {
	if config, ok := obj.(*apiserver.AuthenticationConfiguration); ok {
		r.refuseAll(validation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), config, nil))
	}
}

// authorization is ValidateAuthorizationConfiguration, but for its check that the kubeconfig of a webhook exists: the file is on another machine.
func (r *reader) authorization(obj runtime.Object) {
	config, ok := obj.(*apiserver.AuthorizationConfiguration)
	if !ok {
		return
	}
	modes := sets.New("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "Node", "RBAC")
	for _, e := range validation.ValidateAuthorizationConfiguration(authorizationcel.NewDefaultCompiler(), nil, config, modes, sets.New("Webhook")) {
		file, _ := e.BadValue.(string)
		if !strings.HasSuffix(e.Field, ".kubeConfigFile") || !path.IsAbs(file) {
			r.refuseAll(field.ErrorList{e})
		}
	}
}

// tracing is ReadTracingConfiguration and its validation in k8s.io/apiserver/pkg/server/options.
func (r *reader) tracing(obj runtime.Object) {
	if config, ok := obj.(*apiserver.TracingConfiguration); ok {
		r.refuseAll(tracing.ValidateTracingConfiguration(&config.TracingConfiguration, utilfeature.DefaultFeatureGate, nil))
	}
}

// admission reads the configuration of the admission plugins (ReadAdmissionConfiguration in k8s.io/apiserver/pkg/admission). In an older form
// without a kind, the whole file is the configuration of ImagePolicyWebhook or of PodNodeSelector: it is not checked.
func (r *reader) admission() {
	var old map[string]any
	if err := yaml.Unmarshal([]byte(r.Text), &old); err == nil && (old["imagePolicy"] != nil || old["podNodeSelectorPluginConfig"] != nil) {
		return
	}
	r.document("AdmissionConfiguration", r.Text, func(obj runtime.Object) {
		config, ok := obj.(*apiserver.AdmissionConfiguration)
		if !ok {
			return
		}
		for _, plugin := range config.Plugins {
			if _, has := components.Admission(plugin.Name).In(r.Minor); !has && components.Known(r.Minor) {
				r.ignore("correct the name", "the API server has no admission plugin %q, and ignores its configuration", plugin.Name)
				continue
			}
			text, given := "", plugin.Configuration != nil
			if given {
				text = string(plugin.Configuration.Raw)
			} else if plugin.Path != "" {
				text, given = r.Read(plugin.Path)
				r.path = plugin.Path
			}
			if given && strings.TrimSpace(text) != "" {
				r.at = "the plugin " + plugin.Name + ": "
				r.pluginConfiguration(plugin.Name, text)
			}
			r.at, r.path = "", ""
		}
	})
}

func (r *reader) pluginConfiguration(plugin, text string) {
	switch plugin {
	case "PodSecurity":
		r.document("PodSecurityConfiguration", text, func(obj runtime.Object) {
			if config, ok := obj.(*podsecurity.PodSecurityConfiguration); ok {
				r.refuseAll(podsecurityvalidation.ValidatePodSecurityConfiguration(config))
			}
		})
	case "EventRateLimit":
		if raw, _, ok := r.typed("Configuration", text); ok {
			r.eventLimits(raw)
		}
	}
}

// eventLimits is ValidateConfiguration in plugin/pkg/admission/eventratelimit/apis/eventratelimit/validation of Kubernetes.
func (r *reader) eventLimits(raw []byte) {
	var config struct {
		Limits []struct {
			Type       string
			QPS, Burst int64
		}
	}
	if err := yaml.Unmarshal(raw, &config); err != nil {
		r.refuse("correct the text", "it is not read: %v", err)
		return
	}
	if len(config.Limits) == 0 {
		r.refuse("add a limit", "limits is empty")
	}
	types := []string{"Server", "Namespace", "User", "SourceAndObject"}
	for i, limit := range config.Limits {
		at := field.NewPath("limits").Index(i)
		if !sets.New(types...).Has(limit.Type) {
			r.refuseAll(field.ErrorList{field.NotSupported(at.Child("type"), limit.Type, types)})
		}
		if limit.QPS <= 0 || limit.Burst <= 0 {
			r.refuseAll(field.ErrorList{field.Invalid(at, limit.QPS, "qps and burst must be positive")})
		}
	}
}
