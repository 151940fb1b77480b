package lab

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	scratch "github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

// registryAddress is where the container runtimes of instances find all images, whatever
// the registry in an image's name is.
const registryAddress = awsAddress + ":5001"

// Versions of add-ons: those that the default flavor and kubeadm name.
const (
	flannel         = "v0.27.4"
	flannelPlugin   = "v0.9.1"
	cloudController = "v1.34.0"
	coreDNS         = "v1.12.1"
)

// image is an image that the lab makes from a program.
type image struct {
	name    string // without its registry: "kube-proxy:v1.34.2"
	program string // file name in the folder of programs
	path    string // of the program in the image
	start   bool   // the image starts the program if the container has no command
}

// images are those that the cluster of the default flavor needs: programs of Kubernetes,
// and the add-ons in the versions of addons/go.mod. The plugin of flannel is that of
// cni/go.mod: the module of its own repository is not published.
func images(version string) []image {
	all := []image{
		{"pause:3.10.1", "labnode", "/pause", true},
		{"lab/web:v1", "labnode", "/web", true},
		{"lab/get:v1", "labnode", "/get", false},
		{"etcd:3.6.5-0", "etcd-v3.6.5", "/usr/local/bin/etcd", false},
		{"coredns/coredns:" + coreDNS, "coredns-" + coreDNS, "/coredns", true},
		{"flannel-io/flannel:" + flannel, "flanneld-" + flannel, "/opt/bin/flanneld", true},
		{"flannel-io/flannel-cni-plugin:v1.8.0-flannel1", "flannel-cni-" + flannelPlugin, "/flannel", false},
		{"provider-aws/cloud-controller-manager:" + cloudController, "aws-cloud-controller-manager-" + cloudController, "/bin/aws-cloud-controller-manager", true},
	}
	for _, program := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		all = append(all, image{program + ":" + version, program + "-" + version, "/usr/local/bin/" + program, true})
	}
	return all
}

// waiting matches the images of the EBS CSI driver and its sidecars, whose modules are not
// published. A program that does nothing replaces theirs.
var waiting = regexp.MustCompile(`ebs-csi-driver|sig-storage/`)

// serveImages serves the images that a manifest and kubeadm name, until the context ends.
func serveImages(ctx context.Context, at namespace, programs, manifest string, roots []byte) error {
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	local := httptest.NewServer(handler) // for this process: the other one is in a network namespace
	defer local.Close()
	to, err := url.Parse(local.URL)
	if err != nil {
		return err
	}
	base, err := baseLayer(ctx, roots)
	if err != nil {
		return fmt.Errorf("base of images: %w", err)
	}
	all := images(controlplane.Version)
	for _, found := range regexp.MustCompile(`image: [^/\s]+/(\S+)`).FindAllStringSubmatch(manifest, -1) {
		if waiting.MatchString(found[1]) && !slices.ContainsFunc(all, func(i image) bool { return i.name == found[1] }) {
			all = append(all, image{found[1], "labnode", "/pause", true})
		}
	}
	for _, i := range all {
		if err := i.push(to.Host, filepath.Join(programs, i.program), base); err != nil {
			return fmt.Errorf("image %s: %w", i.name, err)
		}
	}
	l, err := at.listen(ctx, registryAddress)
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: handler}
	go func() { _ = server.Serve(l) }() // until it is closed
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

// push makes the image and pushes it to a registry.
func (i image) push(registry, program string, base v1.Layer) error {
	layer, err := layerOf(func(w *tar.Writer) error { return addFile(w, i.path, program) })
	if err != nil {
		return err
	}
	made, err := mutate.AppendLayers(mutate.MediaType(scratch.Image, types.OCIManifestSchema1), base, layer)
	if err != nil {
		return err
	}
	file, err := made.ConfigFile()
	if err != nil {
		return err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", "amd64"
	file.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	if i.start {
		file.Config.Entrypoint = []string{i.path}
	}
	if made, err = mutate.ConfigFile(made, file); err != nil {
		return err
	}
	tag, err := name.NewTag(registry+"/"+i.name, name.Insecure)
	if err != nil {
		return err
	}
	return remote.Write(tag, made)
}

// baseLayer has what the programs start: iptables with its libraries, and a few commands. Programs
// trust the certificate of the lab's AWS.
func baseLayer(ctx context.Context, roots []byte) (v1.Layer, error) {
	const iptables = "/usr/sbin/xtables-nft-multi"
	files, err := filepath.Glob("/usr/lib/*/xtables/*.so")
	if err != nil {
		return nil, err
	}
	files = append(files, iptables)
	libraries, err := exec.CommandContext(ctx, "ldd", files...).Output()
	if err != nil {
		return nil, fmt.Errorf("libraries of iptables: %w", err)
	}
	for _, found := range regexp.MustCompile(`(/\S+) \(0x`).FindAllStringSubmatch(string(libraries), -1) {
		files = append(files, found[1])
	}
	files = append(files, "/bin/busybox")
	slices.Sort(files)
	return layerOf(func(w *tar.Writer) error {
		for _, file := range slices.Compact(files) {
			if err := addFile(w, file, file); err != nil {
				return err
			}
		}
		for _, command := range []string{"iptables", "ip6tables", "iptables-save", "ip6tables-save", "iptables-restore", "ip6tables-restore"} {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "usr/sbin/" + command, Linkname: filepath.Base(iptables)}); err != nil {
				return err
			}
		}
		for _, command := range []string{"sh", "cp", "cat", "sleep"} {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + command, Linkname: "busybox"}); err != nil {
				return err
			}
		}
		return addContent(w, "/etc/ssl/certs/ca-certificates.crt", 0o644, roots)
	})
}

// layerOf returns a layer with files. It is not compressed.
func layerOf(fill func(*tar.Writer) error) (v1.Layer, error) {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	if err := fill(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return static.NewLayer(content.Bytes(), types.OCIUncompressedLayer), nil
}

func addFile(w *tar.Writer, path, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return addContent(w, path, 0o755, content)
}

func addContent(w *tar.Writer, path string, mode int64, content []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(path, "/"), Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}
