package secrets

import "github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"

// Kinds lists the kinds of this package: one line each.
func Kinds() []*kind.Kind {
	return []*kind.Kind{
		pkiKind(),
		initMarkerKind(),
		deletionProtectionKind(),
		restoreKind(),
		tagKeysKind(),
		bootstrapNamesKind(),
		bootstrapSecretsKind(),
		bootstrapParametersKind(),
	}
}
