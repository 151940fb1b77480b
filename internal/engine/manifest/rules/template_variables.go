package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules/jinja"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// standardVariables are the variables that cloud-init has on every platform, as v1.NAME or NAME ("Instance metadata" in the documentation of
// cloud-init; _get_standardized_metadata in cloudinit/sources/__init__.py).
func standardVariables() []string {
	return strings.Fields(`_beta_keys availability_zone cloud_id cloud_name distro distro_release distro_version instance_id kernel_release local_hostname
		machine platform public_ssh_keys python_version region subplatform system_platform userdata variant vendordata`)
}

// metadataVariables are those of ds.meta_data: the categories of the metadata service of EC2 in its version 2021-03-23 ("Instance metadata
// categories", EC2 user guide), which is the newest that cloud-init reads (extended_metadata_versions in cloudinit/sources/DataSourceEc2.py). A
// hyphen in a name is an underscore in a variable.
func metadataVariables() []string {
	return strings.Fields(`ami_id ami_launch_index ami_manifest_path ancestor_ami_ids autoscaling block_device_mapping elastic_gpus elastic_inference events
		hibernation hostname iam identity_credentials instance_action instance_id instance_life_cycle instance_type ipv6 kernel_id local_hostname local_ipv4
		mac managed_ssh_keys metrics network placement product_codes profile public_hostname public_ipv4 public_keys ramdisk_id reservation_id
		security_groups services spot system tags`)
}

// placementVariables are those of ds.meta_data.placement.
func placementVariables() []string {
	return strings.Fields("availability_zone availability_zone_id group_name host_id partition_number region")
}

// otherVariables are top-level variables whose attributes are not checked.
func otherVariables() []string {
	return strings.Fields(`base64_encoded_keys merged_cfg merged_system_cfg sensitive_keys sys_info system_info userdata vendordata vendordata2`)
}

// level returns the valid names for the last element of a path, or nil if they are not known.
func level(path []string) []string {
	switch parent := strings.Join(path[:len(path)-1], "."); parent {
	case "":
		return slices.Concat(standardVariables(), otherVariables(), []string{"ds", "v1"})
	case "v1":
		return standardVariables()
	case "ds":
		return strings.Fields("_doc _metadata_api_version dynamic meta_data user_data")
	case "ds.meta_data":
		return metadataVariables()
	case "ds.meta_data.placement":
		return placementVariables()
	}
	return nil
}

// undefined returns the position of the first name in a path that cloud-init does not define, counted from 1, or 0 if it may define all.
func undefined(path []string) int {
	for n := 1; n <= len(path); n++ {
		if known := level(path[:n]); known != nil && !slices.Contains(known, path[n-1]) {
			return n
		}
	}
	return 0
}

// variableOf returns the path of a variable with underscores: both forms exist (get_jinja_variable_alias in cloudinit/handlers/jinja_template.py).
func variableOf(path []string) []string {
	out := slices.Clone(path)
	for i, name := range out {
		out[i] = regex.Of(`[-+/*%~.:]`).ReplaceAllString(name, "_")
	}
	return out
}

// checkVariable checks a variable that a template reads.
func (c *checks) checkVariable(o *manifest.Entry, p templatePart, r jinja.Read) {
	path := variableOf(r.Path)
	name := strings.Join(path, ".")
	if r.Maybe {
		return
	}
	n := undefined(path)
	switch {
	case n == 0:
		c.checkOptional(o, p, name, r)
		return
	case n < len(path) || r.Operand: // UndefinedError, or TypeError of __sub__ in cloudinit/templater.py
		c.failFirst(o.Problem(p.path, fmt.Sprintf("%s%s is not a variable, in %s", ignoresAll, strings.Join(path[:n], "."), name), nearest(path[:n])))
	case r.Default:
	case namesNode(p):
		c.failFirst(
			o.Problem(
				p.path,
				fmt.Sprintf("cloud-init has no variable %s, and writes %s%s, which is no valid value here", name, missingPrefix, path[n-1]),
				nearest(path),
			),
		)
	default:
		c.warn(o.Problem(p.path, fmt.Sprintf("cloud-init has no variable %s, and writes %s%s instead", name, missingPrefix, path[n-1]), nearest(path)))
	}
}

// checkOptional warns of variables that only some machines have.
func (c *checks) checkOptional(o *manifest.Entry, p templatePart, name string, r jinja.Read) {
	if r.Default {
		return
	}
	what := ""
	switch name {
	case "ds.meta_data.public_hostname", "ds.meta_data.public_ipv4":
		what = "a public IP address"
	case "ds.meta_data.ipv6":
		what = "an IPv6 address"
	case "ds.meta_data.placement.group_name", "ds.meta_data.placement.partition_number":
		what = "a placement group"
	case "ds.meta_data.placement.host_id":
		what = "a dedicated host"
	default:
		if !strings.HasPrefix(name, "ds.meta_data.tags.") && name != "ds.meta_data.tags" {
			return
		}
		what = "tags in its metadata, which EC2 refuses for the tags of a cluster" // instanceMetadataTags
	}
	c.warn(
		o.Problem(
			p.path, fmt.Sprintf("only a machine with %s has %s; for others cloud-init writes %s…", what, name, missingPrefix), "use another variable",
		),
	)
}

// namesNode reports whether a slash in the value of a field is an error: in a Node name, an address, a label or a taint.
func namesNode(p templatePart) bool {
	return slices.Contains(strings.Fields("node-labels node-ip hostname-override register-with-taints"), p.argument) ||
		regex.Of(`nodeRegistration\.(name|taints\[\d+\]\.\w+)$|\.advertiseAddress$`).MatchString(p.path)
}

// nearest suggests a variable with a similar name.
func nearest(path []string) string {
	parent := strings.Join(path[:len(path)-1], ".")
	public := slices.DeleteFunc(level(path), func(name string) bool { return strings.HasPrefix(name, "_") })
	if near := suggest.Nearest(path[len(path)-1], public); near != "" {
		return "did you mean " + strings.TrimPrefix(parent+"."+near, ".") + "?"
	}
	return "use one of those in the documentation of cloud-init, such as ds.meta_data.local_hostname"
}

// sameForAll reports whether a Node name is the same for all machines of a group: it has no variables, or only variables that have the same value
// on all of these machines.
func sameForAll(name string) bool {
	t, err := jinja.Parse(name)
	if err != nil || strings.Contains(name, "$") || regex.Of(`random|lipsum`).MatchString(name) {
		return false
	}
	constant := strings.Fields(`ds.meta_data.instance_type ds.meta_data.ami_id ds.meta_data.ami_launch_index ds.meta_data.ami_manifest_path
		ds.meta_data.instance_life_cycle ds.meta_data.placement.region ds.meta_data.placement.group_name ds.meta_data.profile ds.meta_data.security_groups
		ds.meta_data.services.domain ds.meta_data.services.partition`)
	shared := strings.Fields(`cloud_id cloud_name distro distro_release distro_version kernel_release machine platform python_version region subplatform
		system_platform variant`)
	for _, r := range t.Reads {
		path := variableOf(r.Path)
		if !slices.Contains(constant, strings.Join(path, ".")) && !slices.Contains(shared, strings.TrimPrefix(strings.Join(path, "."), "v1.")) {
			return false
		}
	}
	return len(t.Reads) > 0 || !t.Computes
}
