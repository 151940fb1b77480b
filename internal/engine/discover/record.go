package discover

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// fromRecord describes machines with a tag that lists the fields of their template and the
// short values. Each other field gets the first value with which the tag agrees, of those that
// AWS returns and those that are usual.
func (s *SelfManaged) fromRecord(g *machineGroup, r topology.Recorded, have infrav1.AWSMachineSpec) {
	boot := s.bootCandidates(g)
	candidates := machineCandidates(have)
	candidates["failureDomain"] = []string{g.machines[0].Zone}
	maps.Copy(candidates, boot)
	names := slices.Concat(r.Names(), slices.Collect(maps.Keys(boot)))
	slices.Sort(names)
	machine, config, booted := map[string]any{}, map[string]any{}, s.bootedFields(g)
	for _, name := range slices.Compact(names) {
		value, ok := recordedValue(r, name, candidates[name])
		field, isBoot := strings.CutPrefix(name, topology.BootPrefix)
		switch {
		case isBoot && s.plane != nil:
		case !ok && r.Has(name) && booted[name] != "":
			g.rewritten = append(g.rewritten, field)
			put(config, field, booted[name])
		case !ok && r.Has(name):
			g.unknown = append(g.unknown, name)
		case !ok || name == "version":
		case isBoot:
			put(config, field, value)
		case name == "failureDomain":
			g.zone = value
		default:
			put(machine, name, value)
		}
	}
	decode(machine, &g.spec)
	decode(config, &g.boot)
	completeSpec(&g.spec, have)
	if !r.Complete {
		g.unknown = append(g.unknown, "fields for which the tag of the machines has no room")
	}
}

// recordedValue returns the value of a field: that in the tag, or else the first candidate with
// which the tag agrees.
func recordedValue(r topology.Recorded, name string, candidates []string) (value string, ok bool) {
	if value, ok = r.Value(name); ok {
		return value, true
	}
	for _, v := range candidates {
		if r.Agrees(name, v) {
			return v, true
		}
	}
	return "", false
}

// completeSpec removes what is set by default, and adds what a template does not record.
func completeSpec(spec *infrav1.AWSMachineSpec, have infrav1.AWSMachineSpec) {
	if spec.CloudInit.SecureSecretsBackend == infrav1.SecretBackendSecretsManager { // the default
		spec.CloudInit.SecureSecretsBackend = ""
	}
	if spec.HostID == nil { // CAPA's webhook sets it always
		spec.HostAffinity = nil
	}
	if have.SpotMarketOptions != nil && spec.SpotMarketOptions == nil && spec.MarketType == "" {
		spec.SpotMarketOptions = have.SpotMarketOptions
	}
}

// machineCandidates returns the values that the fields of an AWSMachine may have: those of
// fields that have a few only, and what AWS tells.
func machineCandidates(have infrav1.AWSMachineSpec) map[string][]string {
	out := map[string][]string{
		"cloudInit.secureSecretsBackend": {string(infrav1.SecretBackendSecretsManager), string(infrav1.SecretBackendSSMParameterStore)},
		"ignition.storageType":           {string(infrav1.IgnitionStorageTypeOptionClusterObjectStore), string(infrav1.IgnitionStorageTypeOptionUnencryptedUserData)},
		"ignition.version":               {"2.3", "3.0", "3.1", "3.2", "3.3", "3.4"},
		"ami.eksLookupType": {
			string(infrav1.AmazonLinux2023),
			string(infrav1.AmazonLinux2023GPU),
			string(infrav1.AmazonLinux),
			string(infrav1.AmazonLinuxGPU),
		},
		"hostAffinity":         {"default", "host"},
		"networkInterfaceType": {string(infrav1.NetworkInterfaceTypeENI), string(infrav1.NetworkInterfaceTypeEFAWithENAInterface)},
		"nonRootVolumes":       volumeCandidates(have),
	}
	for name, value := range topology.MachineFields(&have) {
		out[name] = append(out[name], value)
	}
	return out
}

// volumeCandidates returns the lists of further volumes that a template may have had, those
// that set the least first: AWS tells more of a volume than a template sets.
func volumeCandidates(have infrav1.AWSMachineSpec) (out []string) {
	lists := [][]infrav1.Volume{nil}
	for _, v := range have.NonRootVolumes {
		var longer [][]infrav1.Volume
		for _, list := range lists {
			for _, x := range versionsOf(v) {
				longer = append(longer, append(slices.Clone(list), x))
			}
		}
		if lists = longer; len(lists) > mostCandidates {
			return nil
		}
	}
	for _, list := range slices.Backward(lists) {
		if text, err := json.Marshal(list); err == nil && list != nil {
			out = append(out, string(text))
		}
	}
	return out
}

// mostCandidates is the number of lists of volumes that are tried.
const mostCandidates = 40000

// versionsOf returns a volume with all sets of its settings that a template need not set.
func versionsOf(v infrav1.Volume) (out []infrav1.Volume) {
	for set := range 1 << 5 {
		x := v
		if set&1 != 0 {
			x.Type = ""
		}
		if set&2 != 0 {
			x.IOPS = 0
		}
		if set&4 != 0 {
			x.Throughput = nil
		}
		if set&8 != 0 {
			x.Encrypted = nil
		}
		if set&16 != 0 {
			x.EncryptionKey = ""
		}
		out = append(out, x)
	}
	return out
}

// put puts a value into a tree: "rootVolume.size".
func put(tree map[string]any, path, value string) {
	key, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		tree[key] = value
		return
	}
	below, ok := tree[key].(map[string]any)
	if !ok {
		below = map[string]any{}
		tree[key] = below
	}
	put(below, rest, value)
}

// decode sets the fields of an object to the values of a tree. Those are texts: what is not a
// string in the object is JSON.
func decode(tree map[string]any, into any) {
	var walk func(tree map[string]any, path []string)
	walk = func(tree map[string]any, path []string) {
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			at := append(slices.Clone(path), key)
			if below, ok := tree[key].(map[string]any); ok {
				walk(below, at)
				continue
			}
			value, _ := tree[key].(string)
			if text, err := json.Marshal(nested(at, value)); err == nil && json.Unmarshal(text, into) == nil {
				continue
			}
			if text, err := json.Marshal(nested(at, json.RawMessage(value))); err == nil {
				_ = json.Unmarshal(text, into) // otherwise the plan shows that the field is missing
			}
		}
	}
	walk(tree, nil)
}

// nested returns a value at a path: {"a": {"b": value}}.
func nested(path []string, value any) any {
	for _, key := range slices.Backward(path) {
		value = map[string]any{key: value}
	}
	return value
}
