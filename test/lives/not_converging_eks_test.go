package lives_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// lastsInEKS reports whether EKS changes a field after its answer, in an update with an ID.
func lastsInEKS(op string) bool {
	return strings.HasPrefix(op, "UpdateCluster") || strings.HasPrefix(op, "UpdateNodegroup") || op == "UpdateAddon" || op == "AssociateEncryptionConfig"
}

// EKS accepts each update of a field and ends it with the status Successful, and the field has its other
// value: the run stops after a few rounds, with the states that it has seen. Each field of each kind of EKS
// is tried once.
func TestEKSUpdatesThatDoNotConverge(t *testing.T) {
	table, tried := enginetest.Tampers(), map[string]bool{}
	for _, file := range []string{enginetest.EKSAddons, "eks-auto.yaml", "eks-fargate.yaml", "eks-iam.yaml", "eks-templates.yaml", "eks-machines.yaml", "eks-karpenter.yaml"} {
		t.Run(enginetest.Name(file), func(t *testing.T) {
			m := enginetest.LoadQuick(t, file)
			for _, f := range m.EKS.Fargate { // by its only other tag, a profile is found
				f.Spec.AdditionalTags = infrav1.Tags{"team": "data"}
			}
			synctest.Test(t, func(t *testing.T) {
				made := enginetest.Prepared(t, m)
				enginetest.MustApply(t, m, made)
				time.Sleep(enginetest.Booting)
				var account bytes.Buffer
				require.NoError(t, made.Save(&account))
				for _, v := range enginetest.TamperingOf(t, m, made).Victims {
					for _, field := range v.Fields {
						k := enginetest.KeyOf(v.Resource, field)
						if tried[k] || table[k] == nil || !ofEKS(v.Resource) {
							continue
						}
						tried[k] = true
						a, err := awssim.Load(bytes.NewReader(account.Bytes()), awssim.Options{Region: m.Region})
						require.NoError(t, err)
						requireStops(t, a, k, func() error {
							p, written := a.Process(), false
							again := func() {
								a.Edit(func(s *awssim.State) {
									if !replacing(s, v) {
										table[k](s, v.ID, field)
									}
								})
							}
							again()
							a.Edit(func(s *awssim.State) { s.EKS.Faults.Reverts = true })
							p.Fault = func(_ int, service, op string) awssim.Fault {
								if written {
									again()
								}
								written = isWrite(service, op) && !lastsInEKS(op)
								return awssim.None
							}
							began := time.Now()
							_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
							require.ErrorAs(t, err, new(*graph.NotConvergingError), k)
							assert.Less(t, time.Since(began), endsWithin(k), k)
							return err
						})
					}
				}
			})
		})
	}
	var left []string
	for k := range enginetest.EKSTampers() {
		if !tried[k] {
			left = append(left, k)
		}
	}
	slices.Sort(left)
	require.Empty(t, left, "fields that were not tried")
}

// ofEKS reports whether a resource belongs to a kind of EKS, or to one that only clusters of EKS have.
func ofEKS(n plan.ID) bool {
	switch n.Kind() {
	case "eks-cluster", "eks-authentication", "node-group", "addon", "access-entry", "pod-identity", "fargate-profile", "identity-provider",
		"oidc-provider", "role", "queue", "event-rule":
		return true
	}
	return false
}

// replacing reports whether an update has deleted a resource, and has not created it again yet.
func replacing(s *awssim.State, v enginetest.Victim) bool {
	switch v.Resource.Kind() {
	case "identity-provider":
		return enginetest.IdentityProvider(s) == nil
	case "access-entry":
		return enginetest.AccessEntry(s, v.ID) == nil
	}
	return false
}

// endsWithin is how long EKS takes for an update, and the time in which reads may be older than its end.
// Updates of tags and those outside of EKS have no end that AWS tells.
func endsWithin(field string) time.Duration {
	switch kind, of, _ := strings.Cut(field, " "); {
	case kind == "identity-provider" && of != "tag": // it is disassociated, and associated again
		return 2*ekssim.ProviderTakes + 3*time.Minute
	case kind == "eks-cluster" && of == "version":
		return ekssim.VersionTakes + 2*time.Minute
	case kind == "eks-cluster" && of == "encryptionKey":
		return ekssim.EncryptionTakes + 2*time.Minute
	case kind == "eks-cluster" && of != "tag":
		return ekssim.ConfigTakes + 2*time.Minute
	case kind == "node-group" && strings.HasPrefix(of, "version"), kind == "node-group" && strings.HasPrefix(of, "launchTemplate"):
		return 3 * ekssim.NodeTakes
	}
	return 6 * time.Minute
}
