package adopt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// A Container Linux Config is written anew if its text is not known, and says so. Without the
// objects in the bucket, it is not known what machines booted with.
func TestImportIgnition(t *testing.T) {
	text, err := enginetest.Read("flatcar.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "flatcar.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "systemd:\n", "systemd: # units\n")), 0o600))
	m := enginetest.Load(t, file, nil)
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Region: m.Region})
		enginetest.MustApply(t, m, a)
		time.Sleep(6 * time.Minute) // until all machines have joined
		p := a.Process()
		target := cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)}
		i, err := adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{})
		require.NoError(t, err)
		require.Len(t, i.Templates, 2)
		for _, x := range i.Templates {
			require.Equal(t, []string{"bootstrap.ignition.containerLinuxConfig.additionalConfig"}, x.Fields)
		}
		require.Equal(t, 2, strings.Count(string(i.Manifest), "- name: 10-flatcar.conf\n"), "%s", i.Manifest)
		require.Equal(
			t,
			2,
			strings.Count(string(i.Manifest), "# Written anew, from what the machines booted with: ignition.containerLinuxConfig.additionalConfig.\n"),
			"%s",
			i.Manifest,
		)

		a.Edit(func(s *awssim.State) {
			for _, b := range s.S3.Buckets {
				clear(b.Objects)
			}
		})
		i, err = adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{})
		require.NoError(t, err)
		require.Empty(t, i.LeftOut)
		require.Equal(
			t,
			2,
			strings.Count(string(i.Manifest), "# Not known: the values of ignition.containerLinuxConfig.additionalConfig, preKubeadmCommands"),
			"%s",
			i.Manifest,
		)
	})
}
