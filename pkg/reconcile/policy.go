package reconcile

import (
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/permission"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// ControlPlane is the type of control planes.
type ControlPlane string

// The types of control planes.
const (
	AnyControlPlane ControlPlane = ""
	SelfManaged     ControlPlane = "self-managed"
	EKS             ControlPlane = "eks"
)

// Policy returns the IAM policy for a user that runs Apply, Delete and Status on clusters
// of that type: exactly the actions that they call. The region may be "" for all.
func Policy(region string, c ControlPlane) plan.PolicyDocument {
	return plan.PolicyDocument(permission.Policy(permission.Scope{Region: region, Kind: permission.Kind(c)}))
}

// Policy returns the IAM policy for the cluster of the manifest, limited to its region,
// its buckets, the roles of its machines and the identities in it.
func (m *Manifest) Policy() plan.PolicyDocument {
	return plan.PolicyDocument(permission.Policy(permission.Of(m.cluster)))
}

// PolicyWithBackups adds what backups and restores need: buckets for backups and for Restore.Bucket, and
// the keys of KMS that encrypt backups, by ID, ARN or alias. The region is that of the keys; "" for all.
func PolicyWithBackups(d plan.PolicyDocument, region string, buckets, keys []string) plan.PolicyDocument {
	for _, s := range permission.ForBackups(permission.Scope{Region: region, Backups: buckets, BackupKeys: keys}) {
		d.Statement = append(slices.Clip(d.Statement), s)
	}
	return d
}

// SplitPolicy returns documents that together allow the same as d: as few as it takes, so that
// each is small enough for a managed policy of IAM.
func SplitPolicy(d plan.PolicyDocument) (out []plan.PolicyDocument) {
	for _, part := range permission.Split(permission.Document(d)) {
		out = append(out, plan.PolicyDocument(part))
	}
	return out
}

// PolicySize returns the number of characters of a document as IAM counts them.
func PolicySize(d plan.PolicyDocument) int { return permission.Size(permission.Document(d)) }

// MostManagedPolicy is how many characters a managed policy of IAM may have.
const MostManagedPolicy = permission.MostPolicy

// MostManagedPolicies is how many managed policies IAM attaches to a role or user, unless the
// quota of the account is raised.
const MostManagedPolicies = permission.MostPolicies

// StatementOf returns the Sid of the statement of Policy that allows an action; "" for none.
func StatementOf(action string) string {
	for _, s := range permission.Policy(permission.Scope{}).Statement {
		if slices.Contains(s.Action, action) {
			return s.Sid
		}
	}
	return ""
}
