// Command schemagen generates the archive of CRD schemas that package manifest embeds, and
// the descriptions of their fields, from the CRDs of the Cluster API and CAPA modules in
// go.mod. After an update of these modules, run it in the root of the repository:
//
//	go run ./internal/engine/manifest/internal/schemagen
package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	target       = "internal/engine/manifest/crd/schemas.zip"
	descriptions = "internal/engine/manifest/crd/descriptions.json.gz"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	files, err := collect(ctx)
	if err != nil {
		return err
	}
	archive, err := pack(files)
	if err != nil {
		return err
	}
	if err := os.WriteFile(target, archive, 0o600); err != nil {
		return err
	}
	texts, err := describe(files)
	if err != nil {
		return err
	}
	return os.WriteFile(descriptions, texts, 0o600)
}

// file is one schema: the name is "kind/version.json".
type file struct {
	name     string
	data     []byte
	describe map[string]string // by path, such as "spec.network.subnets[].id"
}

// wanted lists the CRDs by module and path.
func wanted() map[string][]string {
	return map[string][]string{
		"sigs.k8s.io/cluster-api": {
			"core/config/crd/bases/cluster.x-k8s.io_clusters.yaml",
			"core/config/crd/bases/cluster.x-k8s.io_clusterclasses.yaml",
			"core/config/crd/bases/cluster.x-k8s.io_machinedeployments.yaml",
			"core/config/crd/bases/cluster.x-k8s.io_machines.yaml",
			"core/config/crd/bases/cluster.x-k8s.io_machinepools.yaml",
			"core/config/crd/bases/cluster.x-k8s.io_machinehealthchecks.yaml",
			"core/config/crd/bases/cluster.x-k8s.io_machinedrainrules.yaml",
			"core/config/crd/bases/addons.cluster.x-k8s.io_clusterresourcesets.yaml",
			"bootstrap/kubeadm/config/crd/bases/bootstrap.cluster.x-k8s.io_kubeadmconfigs.yaml",
			"bootstrap/kubeadm/config/crd/bases/bootstrap.cluster.x-k8s.io_kubeadmconfigtemplates.yaml",
			"controlplane/kubeadm/config/crd/bases/controlplane.cluster.x-k8s.io_kubeadmcontrolplanes.yaml",
			"controlplane/kubeadm/config/crd/bases/controlplane.cluster.x-k8s.io_kubeadmcontrolplanetemplates.yaml",
		},
		"sigs.k8s.io/cluster-api-provider-aws/v2": {
			"config/crd/bases/infrastructure.cluster.x-k8s.io_awsclusters.yaml",
			"config/crd/bases/infrastructure.cluster.x-k8s.io_awsclustertemplates.yaml",
			"config/crd/bases/infrastructure.cluster.x-k8s.io_awsmanagedclustertemplates.yaml",
			"config/crd/bases/controlplane.cluster.x-k8s.io_awsmanagedcontrolplanetemplates.yaml",
			"config/crd/bases/infrastructure.cluster.x-k8s.io_awsmachines.yaml",
			"config/crd/bases/infrastructure.cluster.x-k8s.io_awsmachinetemplates.yaml",
			"config/crd/bases/infrastructure.cluster.x-k8s.io_awsmachinepools.yaml",
			"config/crd/bases/infrastructure.cluster.x-k8s.io_awsmanagedclusters.yaml",
			"config/crd/bases/infrastructure.cluster.x-k8s.io_awsmanagedmachinepools.yaml",
			"config/crd/bases/infrastructure.cluster.x-k8s.io_awsfargateprofiles.yaml",
			"config/crd/bases/controlplane.cluster.x-k8s.io_awsmanagedcontrolplanes.yaml",
			"config/crd/bases/bootstrap.cluster.x-k8s.io_eksconfigs.yaml",
			"config/crd/bases/bootstrap.cluster.x-k8s.io_eksconfigtemplates.yaml",
			"config/crd/bases/bootstrap.cluster.x-k8s.io_nodeadmconfigs.yaml",
			"config/crd/bases/bootstrap.cluster.x-k8s.io_nodeadmconfigtemplates.yaml",
			"config/crd/bases/infrastructure.cluster.x-k8s.io_awsclustercontrolleridentities.yaml",
			"config/crd/bases/infrastructure.cluster.x-k8s.io_awsclusterroleidentities.yaml",
			"config/crd/bases/infrastructure.cluster.x-k8s.io_awsclusterstaticidentities.yaml",
		},
	}
}

// collect reads the CRDs and returns the schemas of all their versions, sorted by name.
func collect(ctx context.Context) ([]file, error) {
	var files []file
	for module, paths := range wanted() {
		out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output() //nolint:gosec // a constant
		if err != nil {
			return nil, fmt.Errorf("find module %s: %w", module, err)
		}
		for _, path := range paths {
			found, err := schemas(filepath.Join(strings.TrimSpace(string(out)), path))
			if err != nil {
				return nil, err
			}
			files = append(files, found...)
		}
	}
	slices.SortStableFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return files, nil
}

// unread reports whether a version is not supported: alpha versions.
func unread(version string) bool { return strings.Contains(version, "alpha") }

// schemas reads one CRD.
func schemas(path string) ([]file, error) {
	raw, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var files []file
	for _, v := range crd.Spec.Versions {
		if unread(v.Name) || v.Schema == nil {
			continue
		}
		texts := map[string]string{}
		read(texts, "", withoutStatus(v.Schema.OpenAPIV3Schema))
		strip(v.Schema.OpenAPIV3Schema)
		data, err := json.Marshal(v.Schema.OpenAPIV3Schema)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, file{name: crd.Spec.Names.Kind + "/" + v.Name + ".json", data: data, describe: texts})
	}
	return files, nil
}

// withoutStatus removes the fields of the status, which is never read from a manifest.
func withoutStatus(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if _, ok := s.Properties["status"]; ok {
		keep := true
		s.Properties["status"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}
	}
	return s
}

// read collects the descriptions of a schema and of what is below it.
func read(texts map[string]string, path string, s *apiextensionsv1.JSONSchemaProps) {
	if s.Description != "" {
		texts[path] = s.Description
	}
	for name, p := range s.Properties {
		read(texts, strings.TrimPrefix(path+"."+name, "."), &p)
	}
	if s.Items != nil && s.Items.Schema != nil {
		read(texts, path+"[]", s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		read(texts, path+"{}", s.AdditionalProperties.Schema)
	}
}

// strip removes the descriptions, which validation does not use.
func strip(s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	s.Description = ""
	for name, p := range s.Properties {
		strip(&p)
		s.Properties[name] = p
	}
	if s.Items != nil {
		strip(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		strip(s.AdditionalProperties.Schema)
	}
	for _, group := range [][]apiextensionsv1.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range group {
			strip(&group[i])
		}
	}
	strip(s.Not)
}

// pack creates the archive. It contains no times, so that equal schemas give equal bytes.
func pack(files []file) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestCompression)
	})
	for _, f := range files {
		entry, err := w.Create(f.name)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// describe packs the descriptions: each text once, and its number for each field.
func describe(files []file) ([]byte, error) {
	var out struct {
		Texts  []string                  `json:"texts"`
		Fields map[string]map[string]int `json:"fields"` // by "kind/version" and path
	}
	out.Fields = map[string]map[string]int{}
	numbers := map[string]int{}
	for _, f := range files {
		fields := map[string]int{}
		for _, path := range slices.Sorted(maps.Keys(f.describe)) {
			text := f.describe[path]
			n, known := numbers[text]
			if !known {
				n = len(out.Texts)
				numbers[text] = n
				out.Texts = append(out.Texts, text)
			}
			fields[path] = n
		}
		out.Fields[strings.TrimSuffix(f.name, ".json")] = fields
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
