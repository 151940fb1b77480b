package manifest

import (
	"slices"
	"strings"
)

// CloudController is an AWS cloud controller manager that the manifest installs. Its minor version is that of
// Kubernetes (README.md of cloud-provider-aws, "Compatibility with Kubernetes").
type CloudController struct {
	At      Position // of the text that has the version
	Object  string   // "ConfigMap/demo-cloud-controller-manager"; "" in a file of LoadOptions.Addons
	Path    string
	Version string // the tag of its image; "": that of the chart
	Once    bool   // a change in the manifest does not change it in the cluster
}

// CloudControllers lists the AWS cloud controller managers that sets and charts install.
func (c *Cluster) CloudControllers() (all []CloudController) {
	for _, s := range c.ResourceSets {
		for _, d := range s.Documents {
			if image := d.cloudControllerImage(); image != "" {
				_, tag, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
				tag, _, _ = strings.Cut(tag, "@")
				all = append(all, CloudController{At: d.At.Position, Object: d.At.Object, Path: d.At.Path, Version: tag, Once: !s.Reconcile})
			}
		}
	}
	for _, chart := range c.Charts {
		if IsCloudControllerChart(chart.Title) {
			object, path := KindHelmChart+"/"+chart.Name, "spec.valuesTemplate"
			tag, _ := ValueAt(chart.Values, "image.tag").(string)
			all = append(all, CloudController{At: c.At(object, path), Object: object, Path: path, Version: tag, Once: chart.Once})
		}
	}
	return all
}

// cloudControllerImage returns the image of the AWS cloud controller manager, judging by its name or arguments; "" if
// the object does not run it.
func (d *Document) cloudControllerImage() string {
	for _, container := range d.list("spec.template.spec.containers") {
		image, _ := ValueAt(container, "image").(string)
		args, _ := ValueAt(container, "args").([]any)
		command, _ := ValueAt(container, "command").([]any)
		if strings.Contains(image, "cloud-controller-manager") &&
			(strings.Contains(image, "aws") || slices.Contains(slices.Concat(command, args), any("--cloud-provider=aws"))) {
			return image
		}
	}
	return ""
}
