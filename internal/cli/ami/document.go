package ami

import (
	"encoding/json"
	"io"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/ami"
)

// apiVersion is the API version of upstream's kinds.
const apiVersion = "ami.aws.infrastructure.cluster.x-k8s.io/v1beta1"

// image is upstream's kind AWSAMI plus the architecture, for which upstream's type has no
// field.
type image struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name              string     `json:"name,omitempty"`
	CreationTimestamp *time.Time `json:"creationTimestamp,omitempty"`
}

type spec struct {
	OS                string `json:"os"`
	Region            string `json:"region"`
	ImageID           string `json:"imageID"`
	KubernetesVersion string `json:"kubernetesVersion"`
	Architecture      string `json:"architecture,omitempty"`
}

// imageList is upstream's kind AWSAMIList.
type imageList struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   metadata `json:"metadata"`
	Items      []image  `json:"items"`
}

func document(i ami.Image) image {
	d := image{
		Kind: "AWSAMI", APIVersion: apiVersion, Metadata: metadata{Name: i.Name},
		Spec: spec{OS: i.OS, Region: i.Region, ImageID: i.ID, KubernetesVersion: i.Version, Architecture: i.Architecture},
	}
	if !i.Created.IsZero() {
		at := i.Created.UTC().Truncate(time.Second)
		d.Metadata.CreationTimestamp = &at
	}
	return d
}

// encode prints a document as upstream does: JSON ends without a newline.
func encode(w io.Writer, format string, v any) error {
	if format != "json" {
		return render.Encode(w, render.YAML, v)
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}
