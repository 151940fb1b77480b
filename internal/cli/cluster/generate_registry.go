package cluster

import (
	"regexp"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// registryForm is the form of a registry for images: a host with a dot or a port, and a path.
var registryForm = regexp.MustCompile(`^(?:[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+(?::\d+)?|[a-zA-Z0-9-]+:\d+)(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*$`)

// checkRegistry refuses a registry that is none, before anything is read.
func checkRegistry(registry string) error {
	if registry != "" && !registryForm.MatchString(registry) {
		return env.Usagef("--image-registry: %q is not a registry for images, such as registry.example.com or registry.example.com:5000/mirror", registry)
	}
	return nil
}

var (
	imageOfContainer     = regexp.MustCompile(`(?m)^(\s*(?:- )?image: )([a-z0-9.-]+\.[a-z]+)(/\S+)$`)
	kubeadmConfiguration = regexp.MustCompile(`(?m)^( *)clusterConfiguration:\n`)
	chartOfManifest      = regexp.MustCompile(`(?m)^ +chartName: (\S+)$`)
)

// fromRegistry returns a manifest whose images come from a registry, those of kubeadm and those of add-ons, and tells
// which the registry needs. The charts name their images in values, which differ from chart to chart.
func (o *generateOptions) fromRegistry(text string) (string, error) {
	if o.registry == "" {
		return text, nil
	}
	if !kubeadmConfiguration.MatchString(text) {
		return "", env.Usagef(
			"--image-registry: the flavor %s has no machines with kubeadm: the nodes of EKS take their images from registries of AWS",
			o.flavor.value,
		)
	}
	text = kubeadmConfiguration.ReplaceAllString(text, "${0}${1}  imageRepository: "+o.registry+"\n")
	versions, err := parameterValues(text, version)
	if err != nil {
		return "", err
	}
	o.Env.Story("%s needs the images of kubeadm:", o.registry)
	o.Env.Story("  kubeadm config images list --kubernetes-version %s --image-repository %s", versions[0].Value, o.registry)
	o.Env.Story("and those of the add-ons:")
	told := map[string]bool{}
	for _, image := range imageOfContainer.FindAllStringSubmatch(text, -1) {
		if from := image[2] + image[3]; !told[from] {
			told[from] = true
			o.Env.Story("  %s → %s%s", from, o.registry, image[3])
		}
	}
	for _, chart := range chartOfManifest.FindAllStringSubmatch(text, -1) {
		o.Env.Story("The images of the chart %s stay: set its own values for them (valuesTemplate).", chart[1])
	}
	return imageOfContainer.ReplaceAllString(text, "${1}"+strings.ReplaceAll(o.registry, "$", "$$")+"${3}"), nil
}
