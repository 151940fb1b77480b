package configfile

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletv1 "k8s.io/kubelet/config/v1"
	kubeletv1alpha1 "k8s.io/kubelet/config/v1alpha1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// credentialProvider has the fields of a provider that all versions have.
type credentialProvider struct {
	name, apiVersion string
	images           []string
	cached           bool
}

// credentialProviders is validateCredentialProviderConfig in pkg/credentialprovider/plugin of Kubernetes.
func (r *reader) credentialProviders(obj runtime.Object) {
	var providers []credentialProvider
	switch config := obj.(type) {
	case *kubeletv1.CredentialProviderConfig:
		for _, p := range config.Providers {
			providers = append(providers, credentialProvider{p.Name, p.APIVersion, p.MatchImages, p.DefaultCacheDuration != nil})
		}
	case *kubeletv1beta1.CredentialProviderConfig:
		for _, p := range config.Providers {
			providers = append(providers, credentialProvider{p.Name, p.APIVersion, p.MatchImages, p.DefaultCacheDuration != nil})
		}
	case *kubeletv1alpha1.CredentialProviderConfig:
		for _, p := range config.Providers {
			providers = append(providers, credentialProvider{p.Name, p.APIVersion, p.MatchImages, p.DefaultCacheDuration != nil})
		}
	}
	root := field.NewPath("providers")
	if len(providers) == 0 {
		r.refuseAll(field.ErrorList{field.Required(root, "at least one provider is required")})
	}
	versions := []string{"credentialprovider.kubelet.k8s.io/v1", "credentialprovider.kubelet.k8s.io/v1beta1", "credentialprovider.kubelet.k8s.io/v1alpha1"}
	var names []string
	for i, p := range providers {
		at := root.Index(i)
		if strings.ContainsAny(p.name, "/ ") || p.name == "." || p.name == ".." || p.name == "" {
			r.invalid(at.Child("name"), p.name, "must be the name of a file in image-credential-provider-bin-dir")
		}
		if slices.Contains(names, p.name) {
			r.refuseAll(field.ErrorList{field.Duplicate(at.Child("name"), p.name)})
		}
		names = append(names, p.name)
		if !slices.Contains(versions, p.apiVersion) {
			r.refuseAll(field.ErrorList{field.NotSupported(at.Child("apiVersion"), p.apiVersion, versions)})
		}
		if len(p.images) == 0 {
			r.refuseAll(field.ErrorList{field.Required(at.Child("matchImages"), "at least one pattern is required")})
		}
		for n, image := range p.images {
			if strings.Contains(image, "://") || regexp.MustCompile(`\s`).MatchString(image) {
				r.invalid(at.Child("matchImages").Index(n), image, "must be a host and a path without a scheme")
			}
		}
		if !p.cached {
			r.refuseAll(field.ErrorList{field.Required(at.Child("defaultCacheDuration"), "")})
		}
	}
}
