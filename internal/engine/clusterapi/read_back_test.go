package clusterapi_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// TestExportsAreRead reads what "cluster export" prints of each example: the machines get the same commands and names, whatever is in the environment.
func TestExportsAreRead(t *testing.T) {
	for _, file := range enginetest.Examples(t) {
		t.Run(enginetest.Name(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Load(t, file, nil)
				if m.ControlPlane != nil {
					m.ControlPlane.Object.Spec.KubeadmConfigSpec.PreKubeadmCommands = append(
						m.ControlPlane.Object.Spec.KubeadmConfigSpec.PreKubeadmCommands,
						"echo ${HOME} $${PATH} ${X:-y}",
					)
				}
				m = enginetest.Quick(m)
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.Prepare(t, a, m)
				enginetest.MustApply(t, m, a)
				exported, err := adopt.Objects(t.Context(), enginetest.Open(m, a.Process()))
				require.NoError(t, err)
				var text []byte
				for _, o := range exported.Items {
					raw, err := yaml.Marshal(o.Content)
					require.NoError(t, err)
					text = append(append(text, raw...), "---\n"...)
				}
				back, err := loader.Load([]input.Source{{Name: "exported.yaml", Data: text}}, input.LoadOptions{
					Lookup: func(string) (string, bool) { return "of the environment", true },
				})
				require.NoError(t, err)
				require.Empty(t, back.Variables)
				require.Len(t, back.Machines, len(m.Machines))
				require.Len(t, back.Pools, len(m.Pools))
				if m.ControlPlane != nil {
					require.Equal(t, m.ControlPlane.Object.Spec.KubeadmConfigSpec, back.ControlPlane.Object.Spec.KubeadmConfigSpec)
				}
			})
		})
	}
}
