package configfile

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletv1 "k8s.io/kubelet/config/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// credentialProviders is validateCredentialProviderConfig in pkg/credentialprovider/plugin of Kubernetes. The object may have any version of the
// kind: v1 has the fields of all of them.
func (r *reader) credentialProviders(obj runtime.Object) {
	raw, err := json.Marshal(obj)
	if err != nil {
		return
	}
	var config kubeletv1.CredentialProviderConfig
	if err := json.Unmarshal(raw, &config); err != nil {
		return
	}
	root := field.NewPath("providers")
	if len(config.Providers) == 0 {
		r.refuseAll(field.ErrorList{field.Required(root, "at least one provider is required")})
	}
	var names []string
	for i := range config.Providers {
		p, at := &config.Providers[i], root.Index(i)
		if slices.Contains(names, p.Name) {
			r.refuseAll(field.ErrorList{field.Duplicate(at.Child("name"), p.Name)})
		}
		names = append(names, p.Name)
		r.credentialProvider(at, p)
	}
}

func (r *reader) credentialProvider(at *field.Path, p *kubeletv1.CredentialProvider) {
	versions := []string{"credentialprovider.kubelet.k8s.io/v1", "credentialprovider.kubelet.k8s.io/v1beta1", "credentialprovider.kubelet.k8s.io/v1alpha1"}
	if regex.Of(`[/ ]|^\.{0,2}$`).MatchString(p.Name) {
		r.invalid(at.Child("name"), p.Name, "must be the name of a file in image-credential-provider-bin-dir")
	}
	if !slices.Contains(versions, p.APIVersion) {
		r.refuseAll(field.ErrorList{field.NotSupported(at.Child("apiVersion"), p.APIVersion, versions)})
	}
	if len(p.MatchImages) == 0 {
		r.refuseAll(field.ErrorList{field.Required(at.Child("matchImages"), "at least one pattern is required")})
	}
	for n, image := range p.MatchImages {
		if regex.Of(`://|\s`).MatchString(image) {
			r.invalid(at.Child("matchImages").Index(n), image, "must be a host and a path without a scheme")
		}
	}
	if p.DefaultCacheDuration == nil {
		r.refuseAll(field.ErrorList{field.Required(at.Child("defaultCacheDuration"), "")})
	}
}
