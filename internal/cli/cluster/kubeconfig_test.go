package cluster

import (
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// Kubeconfigs that are merged into one file at the same time are all in it.
func TestMergesAtTheSameTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			e := &env.Env{Err: io.Discard, LookupEnv: func(name string) (string, bool) { return file, name == clientcmd.RecommendedConfigPathEnvVar }}
			o := &kubeconfigOptions{manifestFlags: manifestFlags{flags: &flags{Flags: account.Flags{Env: e}}}, merge: true}
			made, name := api.NewConfig(), fmt.Sprint("demo-", i)
			made.Clusters[name], made.AuthInfos[name] = &api.Cluster{Server: "https://x"}, &api.AuthInfo{Token: name}
			made.Contexts[name], made.CurrentContext = &api.Context{Cluster: name, AuthInfo: name}, name
			assert.NoError(t, o.change(t.Context(), file, made, time.Time{}))
		})
	}
	all.Wait()
	got, err := clientcmd.LoadFromFile(file)
	require.NoError(t, err)
	assert.Len(t, got.Contexts, 20)
	assert.Len(t, got.AuthInfos, 20)
}

// The context of a real cluster becomes the current one; that of a simulated cluster does not.
func TestMergedContext(t *testing.T) {
	added := api.NewConfig()
	added.CurrentContext = "new"
	for used, want := range map[bool]string{true: "new", false: "old"} {
		old := api.NewConfig()
		old.CurrentContext = "old"
		assert.Equal(t, want, merged(old, added, used).CurrentContext)
	}
}
