package boot

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/flatcar/ignition/config/v2_3/types"
	"github.com/flatcar/ignition/config/validate/report"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// additionalConfig is the field with a Container Linux Config.
const additionalConfig = "ignition.containerLinuxConfig.additionalConfig"

// IgnitionNode is a file, a directory or a link that Ignition creates.
type IgnitionNode struct {
	Field       string // of the KubeadmConfigSpec, such as "files[0]"
	In          string // where in Field, if that is a text: "storage.files[0]"
	Path        string
	User, Group string
}

// IgnitionProblem is an error with which Ignition refuses a configuration.
type IgnitionProblem struct{ Field, What string }

// IgnitionConfig is what a KubeadmConfigSpec tells Ignition.
type IgnitionConfig struct {
	Nodes    []IgnitionNode
	Accounts []string // users and groups that Ignition creates before it creates files
	Problems []IgnitionProblem
}

// ReadIgnition validates the Ignition configuration of a KubeadmConfigSpec with Ignition's own code. It omits fields that cannot be converted:
// rendering reports those.
func ReadIgnition(spec *bootstrapv1.KubeadmConfigSpec) (out IgnitionConfig) {
	for i, f := range spec.Files {
		if file, err := ignitionFile(f); err == nil {
			at := fmt.Sprintf("files[%d]", i)
			out.add(at, "", ignConfig{Storage: ignStorage{Files: []ignFile{file}}})
		}
	}
	for _, u := range spec.Users {
		out.Accounts = append(out.Accounts, u.Name)
	}
	for i, p := range spec.DiskSetup.Partitions {
		if disk, err := ignitionDisk(p); err == nil {
			out.add(fmt.Sprintf("diskSetup.partitions[%d]", i), "", ignConfig{Storage: ignStorage{Disks: []ignDisk{disk}}})
		}
	}
	for i, f := range spec.DiskSetup.Filesystems {
		out.add(fmt.Sprintf("diskSetup.filesystems[%d]", i), "", ignConfig{Storage: ignStorage{Filesystems: []ignFilesystem{ignitionFilesystem(f)}}})
	}
	var extra ignConfig
	if mergeContainerLinuxConfig(&extra, spec.Ignition.ContainerLinuxConfig) == nil {
		out.addText(&extra)
	}
	return out
}

// addText adds each element of an additionalConfig by itself, because Ignition's code does not say where an error is.
func (out *IgnitionConfig) addText(c *ignConfig) {
	one := func(list string, i int, c ignConfig) { out.add(additionalConfig, fmt.Sprintf("%s[%d]", list, i), c) }
	for i := range c.Ignition.Config.Append {
		one("ignition.config.append", i, ignConfig{Ignition: ignMeta{Config: ignReferences{Append: c.Ignition.Config.Append[i : i+1]}}})
	}
	for i := range c.Storage.Disks {
		one("storage.disks", i, ignConfig{Storage: ignStorage{Disks: c.Storage.Disks[i : i+1]}})
	}
	for i := range c.Storage.RAID {
		one("storage.raid", i, ignConfig{Storage: ignStorage{RAID: c.Storage.RAID[i : i+1]}})
	}
	for i := range c.Storage.Filesystems {
		one("storage.filesystems", i, ignConfig{Storage: ignStorage{Filesystems: c.Storage.Filesystems[i : i+1]}})
	}
	for i := range c.Storage.Files {
		one("storage.files", i, ignConfig{Storage: ignStorage{Files: c.Storage.Files[i : i+1]}})
	}
	for i := range c.Storage.Directories {
		one("storage.directories", i, ignConfig{Storage: ignStorage{Directories: c.Storage.Directories[i : i+1]}})
	}
	for i := range c.Storage.Links {
		one("storage.links", i, ignConfig{Storage: ignStorage{Links: c.Storage.Links[i : i+1]}})
	}
	for i := range c.Systemd.Units {
		one("systemd.units", i, ignConfig{Systemd: ignSystemd{Units: c.Systemd.Units[i : i+1]}})
	}
	for i := range c.Networkd.Units {
		one("networkd.units", i, ignConfig{Networkd: ignNetworkd{Units: c.Networkd.Units[i : i+1]}})
	}
	for _, u := range c.Passwd.Users {
		out.Accounts = append(out.Accounts, u.Name)
	}
	for _, g := range c.Passwd.Groups {
		out.Accounts = append(out.Accounts, g.Name)
	}
}

// add validates a configuration with one element.
func (out *IgnitionConfig) add(field, in string, c ignConfig) {
	c.Ignition.Version = ignitionVersion
	var config types.Config
	data, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(data, &config)
	}
	if err != nil {
		out.Problems = append(out.Problems, IgnitionProblem{field, inText(in, err.Error())})
		return
	}
	var said []string
	for _, e := range validateIgnition(reflect.ValueOf(config)) {
		if e.Kind == report.EntryError && !slices.Contains(said, e.Message) {
			said = append(said, e.Message)
			out.Problems = append(out.Problems, IgnitionProblem{field, inText(in, e.Message)})
		}
	}
	node := func(n ignNode) {
		if n.Filesystem != rootFilesystem {
			return
		}
		x := IgnitionNode{Field: field, In: in, Path: n.Path}
		if n.User != nil {
			x.User = n.User.Name
		}
		if n.Group != nil {
			x.Group = n.Group.Name
		}
		out.Nodes = append(out.Nodes, x)
	}
	for _, f := range c.Storage.Files {
		node(f.ignNode)
	}
	for _, d := range c.Storage.Directories {
		node(d.ignNode)
	}
	for _, l := range c.Storage.Links {
		node(l.ignNode)
	}
}

func inText(in, what string) string {
	if in == "" {
		return what
	}
	return in + ": " + what
}
