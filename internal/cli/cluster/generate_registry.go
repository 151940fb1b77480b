package cluster

import (
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// checkRegistry returns an error if the value of --image-registry is not the address of a registry: a host with a dot or a port,
// and a path.
func checkRegistry(registry string) error {
	form := regex.Of(`^(?:[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+(?::\d+)?|[a-zA-Z0-9-]+:\d+)(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*$`)
	if registry != "" && !form.MatchString(registry) {
		return env.Usagef("--image-registry: %q is not a registry for images, such as registry.example.com or registry.example.com:5000/mirror", registry)
	}
	return nil
}

// fromRegistry replaces the registries of all images, of kubeadm and of the add-ons, by that of --image-registry, and lists the
// images that it must contain. Images of charts stay: charts have different values for them.
func (o *generateOptions) fromRegistry(text string) (string, error) {
	if o.registry == "" {
		return text, nil
	}
	configuration := regex.Of(`(?m)^( *)clusterConfiguration:\n`)
	if !configuration.MatchString(text) {
		return "", env.Usagef(
			"--image-registry: the flavor %s has no machines with kubeadm: the nodes of EKS take their images from registries of AWS",
			o.flavor.value,
		)
	}
	text = configuration.ReplaceAllString(text, "${0}${1}  imageRepository: "+o.registry+"\n")
	versions, err := parameterValues(text, version)
	if err != nil {
		return "", err
	}
	o.Env.Story("%s needs the images of kubeadm:", o.registry)
	o.Env.Story("  kubeadm config images list --kubernetes-version %s --image-repository %s", versions[0].Value, o.registry)
	o.Env.Story("and those of the add-ons:")
	images := regex.Of(`(?m)^(\s*(?:- )?image: )([a-z0-9.-]+\.[a-z]+)(/\S+)$`)
	told := map[string]bool{}
	for _, image := range images.FindAllStringSubmatch(text, -1) {
		if from := image[2] + image[3]; !told[from] {
			told[from] = true
			o.Env.Story("  %s → %s%s", from, o.registry, image[3])
		}
	}
	for _, chart := range regex.Of(`(?m)^ +chartName: (\S+)$`).FindAllStringSubmatch(text, -1) {
		o.Env.Story("The images of the chart %s stay: set its own values for them (valuesTemplate).", chart[1])
	}
	return images.ReplaceAllString(text, "${1}"+o.registry+"${3}"), nil
}
