package configfile

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletv1 "k8s.io/kubelet/config/v1"
	kubeletv1alpha1 "k8s.io/kubelet/config/v1alpha1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// credentialProvider has the fields of a provider that all versions have.
type credentialProvider struct {
	name, apiVersion string
	images           []string
	cached           bool
}

// providersOf returns the providers of a configuration of any version.
func providersOf(obj runtime.Object) (all []credentialProvider) {
	switch config := obj.(type) {
	case *kubeletv1.CredentialProviderConfig:
		for _, p := range config.Providers {
			all = append(all, credentialProvider{p.Name, p.APIVersion, p.MatchImages, p.DefaultCacheDuration != nil})
		}
	case *kubeletv1beta1.CredentialProviderConfig:
		for _, p := range config.Providers {
			all = append(all, credentialProvider{p.Name, p.APIVersion, p.MatchImages, p.DefaultCacheDuration != nil})
		}
	case *kubeletv1alpha1.CredentialProviderConfig:
		for _, p := range config.Providers {
			all = append(all, credentialProvider{p.Name, p.APIVersion, p.MatchImages, p.DefaultCacheDuration != nil})
		}
	}
	return all
}

// credentialProviders is validateCredentialProviderConfig in pkg/credentialprovider/plugin of Kubernetes.
func (r *reader) credentialProviders(obj runtime.Object) {
	root, providers := field.NewPath("providers"), providersOf(obj)
	if len(providers) == 0 {
		r.refuseAll(field.ErrorList{field.Required(root, "at least one provider is required")})
	}
	var names []string
	for i, p := range providers {
		at := root.Index(i)
		if slices.Contains(names, p.name) {
			r.refuseAll(field.ErrorList{field.Duplicate(at.Child("name"), p.name)})
		}
		names = append(names, p.name)
		r.credentialProvider(at, p)
	}
}

func (r *reader) credentialProvider(at *field.Path, p credentialProvider) {
	versions := []string{"credentialprovider.kubelet.k8s.io/v1", "credentialprovider.kubelet.k8s.io/v1beta1", "credentialprovider.kubelet.k8s.io/v1alpha1"}
	if regex.Of(`[/ ]|^\.{0,2}$`).MatchString(p.name) {
		r.invalid(at.Child("name"), p.name, "must be the name of a file in image-credential-provider-bin-dir")
	}
	if !slices.Contains(versions, p.apiVersion) {
		r.refuseAll(field.ErrorList{field.NotSupported(at.Child("apiVersion"), p.apiVersion, versions)})
	}
	if len(p.images) == 0 {
		r.refuseAll(field.ErrorList{field.Required(at.Child("matchImages"), "at least one pattern is required")})
	}
	for n, image := range p.images {
		if regex.Of(`://|\s`).MatchString(image) {
			r.invalid(at.Child("matchImages").Index(n), image, "must be a host and a path without a scheme")
		}
	}
	if !p.cached {
		r.refuseAll(field.ErrorList{field.Required(at.Child("defaultCacheDuration"), "")})
	}
}
