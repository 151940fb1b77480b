package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/configs"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	words "github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
	"github.com/clusterawsadm/clusterawsadm/pkg/schema"
)

type generateOptions struct {
	*flags
	flavor, cni            choice
	version, schema        string
	registry               string // of images; "": those of their authors
	controlPlanes, workers int    // -1: the number in the flavor
	charts                 []string
}

func newGenerate(f *flags) *cobra.Command {
	o, counts := &generateOptions{
		flags:  f,
		flavor: choice{value: "quickstart", of: flavors(), also: clusterctlFlavors()},
		cni:    choice{value: networks()[0].name, of: networkNames()},
	}, []string{
		"control-plane-machine-count",
		"worker-machine-count",
	}
	cmd := &cobra.Command{
		Use:   "generate NAME",
		Short: "Print an example manifest",
		Long: `Print an example manifest. Its first lines say what to set, and how to use it. The
documents at its end install what Nodes need to become ready, a pod network (--cni) and
the AWS cloud controller manager, and the EBS CSI driver with a default StorageClass.
EKS has its own pod network and cloud controller manager, and its EBS CSI driver is an
add-on, with a role that is made with the cluster.

The flavors are:

` + listFlavors(),
		Example: `  clusterawsadm cluster generate demo > demo.yaml
  clusterawsadm cluster generate demo --flavor three-zones --kubernetes-version v1.34.2 --worker-machine-count 5
  clusterawsadm cluster generate demo --chart https://kubernetes-sigs.github.io/metrics-server/metrics-server:3.13.0,namespace=kube-system
  clusterawsadm cluster generate demo --region eu-west-1 | clusterawsadm cluster create -f - --simulate --yes`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range counts {
				if f := cmd.Flags().Lookup(name); f.Changed && strings.HasPrefix(f.Value.String(), "-") {
					return env.Usagef("--%s: %s is not a number of machines", name, f.Value)
				}
			}
			return o.run(cmd, args[0])
		},
	}
	cmd.Flags().Var(&o.flavor, "flavor", "type of cluster: one of the list above, or the name of a similar template of clusterctl, such as machinepool")
	cmd.Flags().Var(&o.cni, "cni", "pod network: "+strings.Join(networkNames(), ", ")+"; none is for those who install their own")
	addChartFlag(cmd, &o.charts)
	cmd.Flags().StringVar(&o.version, "kubernetes-version", "", "Kubernetes version, such as v1.34.2, or v1.34 for EKS (default: of the flavor)")
	cmd.Flags().StringVar(
		&o.registry,
		"image-registry",
		"",
		"`REGISTRY` with copies of all images, for machines without internet (default: those of the authors)",
	)
	cmd.Flags().StringVar(
		&o.schema,
		"schema",
		schema.URL,
		"`ADDRESS` or file of the JSON Schema that the comments for editors name (see 'cluster schema'); none leaves the comments out",
	)
	cmd.Flags().IntVar(&o.controlPlanes, "control-plane-machine-count", -1, "number of control plane machines (default: of the flavor)")
	cmd.Flags().IntVar(&o.workers, "worker-machine-count", -1, "number of machines in each group of workers (default: of the flavor)")
	for _, name := range counts {
		cmd.Flags().Lookup(name).DefValue = "0" // -1 is not shown
	}
	var completions []string
	for _, name := range o.flavor.of {
		completions = append(completions, cobra.CompletionWithDesc(name, summary(name)))
	}
	complete(cmd, "flavor", completions)
	complete(cmd, "cni", o.cni.of)
	return cmd
}

// flavors are the names of the manifests in configs.
func flavors() (out []string) {
	files, _ := fs.Glob(configs.Manifests, "*.yaml") // the pattern is well-formed
	for _, f := range files {
		out = append(out, strings.TrimSuffix(f, ".yaml"))
	}
	slices.Sort(out) // not by the names of the files: eks is before eks-iam
	return out
}

// listFlavors lists the flavors, one on each line, with what they are.
func listFlavors() string {
	var b strings.Builder
	for _, name := range flavors() {
		fmt.Fprintf(&b, "  %-22s  %s\n", name, summary(name))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// summary returns what a flavor is: the beginning of the comment in the first lines of its
// manifest.
func summary(flavor string) string {
	data, _ := configs.Manifests.ReadFile(flavor + ".yaml") // it is in the list
	var words []string
	for line := range strings.Lines(string(data)) {
		text, comment := strings.CutPrefix(line, "# ")
		if !comment {
			break
		}
		words = append(words, strings.Fields(text)...)
	}
	text := strings.Join(words, " ")
	for _, end := range []string{". ", ": ", "; "} {
		text, _, _ = strings.Cut(text, end)
	}
	const most = 54 // the list fits into 80 columns
	if end := strings.LastIndex(text[:min(most+2, len(text))], ", "); len(text) > most && end > 0 {
		return text[:end]
	}
	return strings.TrimSuffix(text, ".")
}

// clusterctlFlavors are the flavors of the templates of Cluster API Provider AWS that have
// another name here.
func clusterctlFlavors() map[string]string {
	return map[string]string{
		"dualstack-ipv4-primary":        "dual-stack",
		"eks-machinepool":               "eks-machines",
		"eks-managedmachinepool":        "eks",
		"eks-managedmachinepool-gpu":    "eks-gpu",
		"eks-managedmachinepool-vpccni": "eks-addons",
		"flatcar-machinepool":           "flatcar-pool",
		"machinepool":                   "machine-pool",
		"simple-clusterclass":           "clusterclass",
	}
}

func (o *generateOptions) run(cmd *cobra.Command, name string) error {
	if len(name) > 63 || !regex.Of(`^[a-z]([-a-z0-9]*[a-z0-9])?$`).MatchString(name) {
		return env.Usagef("%q is not a valid cluster name: use lower-case letters, digits and dashes, 63 at most, and start with a letter", name)
	}
	if err := checkRegistry(o.registry); err != nil {
		return err
	}
	charts, err := (&manifestFlags{flags: o.flags}).readCharts(cmd.Context(), o.charts)
	if err != nil {
		return err
	}
	quiet, err := o.networkOf(charts, cmd.Flags().Lookup("cni").Changed)
	if err != nil {
		return err
	}
	data, err := configs.Manifests.ReadFile(o.flavor.value + ".yaml")
	if err != nil {
		return err
	}
	personalized := personal(string(data), name)
	if err := o.fits(personalized, name); err != nil {
		return err
	}
	text, err := o.asAsked(personalized)
	if err != nil {
		return err
	}
	if text, err = o.withAddons(text, name); err != nil {
		return err
	}
	if text, err = withCharts(text, name, charts); err != nil {
		return err
	}
	if text, err = o.fromRegistry(text); err != nil {
		return err
	}
	if o.cni.value == noNetwork && !quiet {
		o.Env.Story("The manifest installs no pod network (--cni none): Nodes become ready when you have installed one.")
	}
	_, err = o.Env.Out.Write([]byte(o.forEditors(text)))
	return err
}

// forEditors adds the comment with the schema to the documents of Cluster API: yaml-language-server reads it in the
// comments before a document.
func (o *generateOptions) forEditors(text string) string {
	if o.schema == "none" || o.schema == "" {
		return text
	}
	line := "# yaml-language-server: $schema=" + o.schema + "\n"
	return regex.Of(`(?m)^apiVersion: ([a-z]+\.)*cluster\.x-k8s\.io/`).ReplaceAllString(text, strings.ReplaceAll(line, "$", "$$")+"$0")
}

// asAsked returns a manifest with the values of the flags.
func (o *generateOptions) asAsked(text string) (string, error) {
	var err error
	if o.Region != "" {
		if !regex.Of(`^[a-z]{2,4}(-[a-z]+)+-[0-9]+$`).MatchString(o.Region) {
			return "", env.Usagef("--region: %q is not an AWS region, such as eu-west-1", o.Region)
		}
		if text, err = inRegion(text, o.Region); err != nil {
			return "", err
		}
	}
	text = withNodeRole(text)
	if o.version != "" {
		if text, err = ofVersion(text, o.version); err != nil {
			return "", err
		}
	}
	if n := o.controlPlanes; n >= 0 && n%2 == 0 {
		return "", env.Usagef("--control-plane-machine-count: etcd needs an odd number of machines, not %d", n)
	}
	if text, err = o.sized(text, "control-plane-machine-count", controlPlanes, o.controlPlanes); err != nil {
		return "", err
	}
	if text, err = o.sized(text, "worker-machine-count", workers, o.workers); err != nil {
		return "", err
	}
	return roomFor(text, o.workers)
}

// sized returns a manifest with another number of machines; -1 is the same number.
func (o *generateOptions) sized(text, flag string, of parameter, count int) (string, error) {
	if count < 0 {
		return text, nil
	}
	text, err := setParameter(text, of, func(string) string { return strconv.Itoa(count) })
	if errors.Is(err, errNotSet) {
		return "", env.Usagef("--%s: the flavor %s has no machines of this type", flag, o.flavor.value)
	}
	return text, err
}

// roomFor extends the limits of pools to that size; -1 changes nothing.
func roomFor(text string, size int) (string, error) {
	if size < 0 {
		return text, nil
	}
	number := func(was string) int {
		n, err := strconv.Atoi(was)
		if err != nil {
			return size // the manifest does not contain it as a plain value
		}
		return n
	}
	text, err := setParameter(text, fewest, func(was string) string { return strconv.Itoa(min(number(was), size)) })
	if errors.Is(err, errNotSet) {
		return text, nil
	}
	if err != nil {
		return "", err
	}
	return setParameter(text, most, func(was string) string { return strconv.Itoa(max(number(was), size)) })
}

// edgeZone is a Local Zone or a Wavelength Zone. Only some regions have them, and each has other names.
const edgeZone = `availabilityZone: ([a-z]+(?:-[a-z]+)+-\d+-[a-z0-9-]+)`

// inRegion returns a manifest with another region, its zones, and the partition of its ARNs.
func inRegion(text, to string) (string, error) {
	was, err := parameterValues(text, region)
	if err != nil {
		return "", err
	}
	if zone := regex.Of(edgeZone).FindStringSubmatch(text); zone != nil && was[0].Value != to {
		return "", env.Usagef(
			"--region %s: this flavor is an example with the zone %s: generate it without --region, then write the region and one of its zones into the file (aws ec2 describe-availability-zones --region %[1]s --all-availability-zones)",
			to,
			zone[1],
		)
	}
	text = strings.ReplaceAll(text, "arn:"+reconcile.PartitionOf(was[0].Value)+":", "arn:"+reconcile.PartitionOf(to)+":")
	return regexp.MustCompile(`\b`+was[0].Value+`([a-f]?)\b`).ReplaceAllString(text, to+"$1"), nil
}

// ofVersion changes the version of Kubernetes. That of a control plane of EKS
// has two numbers, and those of machines have three.
func ofVersion(text, to string) (string, error) {
	v := regex.Of(`^v?(1\.\d+)(\.\d+.*)?$`).FindStringSubmatch(to)
	if v == nil {
		return "", env.Usagef("--kubernetes-version: %q is not a Kubernetes version, such as v1.34.2", to)
	}
	minor, patch := v[1], v[2]
	if _, err := parameterValues(text, versionOfEKS); patch == "" && err != nil {
		return "", env.Usagef("--kubernetes-version: machine images need a full version, such as v%s.2", minor)
	}
	// The minor version of the AWS cloud controller manager is that of Kubernetes.
	text = regexp.MustCompile(`(cloud-controller-manager(?::|\n(?:  .*\n)*?      tag: )v)1\.\d+\.\d+`).ReplaceAllString(text, "${1}"+minor+".0")
	return setParameter(text, version, func(was string) string {
		if strings.Count(was, ".") == 1 {
			return "v" + minor
		}
		return "v" + minor + cmp.Or(patch, ".0")
	})
}

// withNodeRole shortens the name of the role of Karpenter's nodes in an EC2NodeClass, as the run does that creates the role.
func withNodeRole(text string) string {
	const most = 64 // characters that IAM allows
	role := regex.Of(`\b[a-z0-9-]+-karpenter-node\b`)
	return role.ReplaceAllStringFunc(text, func(name string) string { return words.Shortened(name, most) })
}

// personal returns a manifest with another cluster name, in all fields with names.
// The old name may also be part of other fields and values, which do not change.
func personal(text, name string) string {
	old := regex.Of(`(?m)^kind: Cluster\nmetadata:\n(?:  .*\n)*?  name: (\S+)$`).FindStringSubmatch(text)
	if old == nil {
		return text
	}
	named := regexp.MustCompile(
		`^(\s*(?:- )?(?:name|Name|clusterName|eksClusterName|role|aws:eks:cluster-name|karpenter\.sh/discovery|(?:[a-z0-9-]+\.)*cluster\.x-k8s\.io/[a-z-]+-name): (?:\$\{\w+:=cluster-api-provider-aws-)?)` + regexp.QuoteMeta(
			old[1],
		) + `\b`,
	)
	value := regex.Of(`name: (?:\$\{\w+:=)?([^\s}]+)`) // which may be the default of a variable
	var b strings.Builder
	before := ""
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			as := name
			if most := mostCharacters(strings.TrimSpace(before)); most > 0 {
				as = words.Shortened(name, most-len(value.FindStringSubmatch(line)[1])+len(old[1]))
			}
			line = named.ReplaceAllString(line, "${1}"+as)
		}
		b.WriteString(line)
		before = line
	}
	return b.String()
}

// mostCharacters returns how many characters AWS allows in the name on the next line, if that is the name of a load balancer or a
// bucket; otherwise 0.
func mostCharacters(before string) int {
	switch before {
	case "secondaryControlPlaneLoadBalancer:":
		return 32
	case "s3Bucket:":
		return 63
	}
	return 0
}

// fits returns an error if the name of a MachineDeployment or MachinePool, which contains the name of the cluster, would be too
// long for a label: Cluster API labels machines with it.
func (o *generateOptions) fits(text, name string) error {
	most := 63
	for _, object := range regex.Of(`(?m)^kind: (?:MachineDeployment|MachinePool)\nmetadata:\n(?:  .*\n)*?  name: (\S+)$`).FindAllStringSubmatch(text, -1) {
		most = min(most, 63-len(object[1])+len(name))
	}
	if len(name) > most {
		return env.Usagef(
			"%q is too long a name for a cluster of the flavor %s, whose groups of machines have names that begin with it: use %d characters at most",
			name,
			o.flavor.value,
			most,
		)
	}
	return nil
}
