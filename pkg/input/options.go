package input

// Substitution says in which files variables are replaced by their values.
type Substitution int

// Substitutions.
const (
	SubstituteAuto Substitution = iota // in templates, which kubectl could not apply as they are
	SubstituteAll                      // in all files, as "clusterctl generate" does
	SubstituteNone                     // in no file, as kubectl
)

// Source is one file of a manifest.
type Source struct {
	Name string // name in messages: "demo.yaml"; "-" for standard input
	Data []byte // YAML documents
}

// LoadOptions are settings that a manifest does not contain.
type LoadOptions struct {
	// Set returns the values of the ${VARIABLES} that the user names. They are replaced
	// in all text; nil: none.
	Set func(name string) (string, bool)
	// Lookup returns values from the environment, as os.LookupEnv does, for the variables
	// in fields of templates; nil: none is set.
	Lookup func(name string) (string, bool)
	// Substitute says in which files variables are replaced.
	Substitute Substitution
	// Region is the region if the manifest has none.
	Region string
	// EKSEnableIAM creates missing roles of EKS, as CAPA's feature gate of that
	// name does.
	EKSEnableIAM bool
	// CNI and Addons are Kubernetes objects to apply to the cluster, like a
	// ClusterResourceSet. CNI are those of the pod network.
	CNI, Addons []Source
	// Charts are HelmChartProxy objects beside those of the manifest. No ${VARIABLES} are replaced in them.
	Charts []Source
	// Identities are files with objects of a management cluster: the AWSCluster…Identity objects to
	// which identityRef can refer, and their Secrets. Other objects are ignored.
	Identities []Source
	// AssumeIdentities takes the caller's own credentials, with a warning, for an identity that the input
	// does not have, or whose Secret it does not have.
	AssumeIdentities bool
	// IgnoreUnknown ignores fields that do not exist, with a warning.
	IgnoreUnknown bool
	// Cluster chooses one of several Clusters, as NAME or NAMESPACE/NAME. "": the input has only one.
	Cluster string
	// Strict turns warnings into errors.
	Strict bool
}
