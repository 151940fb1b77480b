package adopt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/runcommand"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/discover"
)

// keyOfEtcd is the key of etcd's CA. A control-plane machine does not have it if etcd runs
// elsewhere.
const keyOfEtcd = "etcd/ca.key"

// keyFiles lists the files of /etc/kubernetes/pki that are the same on all machines.
func keyFiles() []string {
	return []string{"ca.crt", "ca.key", "etcd/ca.crt", keyOfEtcd, "front-proxy-ca.crt", "front-proxy-ca.key", "sa.key", "sa.pub"}
}

// clientFiles lists the files with which the API server reaches etcd. They belong to the keys of
// the cluster only if etcd runs elsewhere.
func clientFiles() []string {
	return []string{"apiserver-etcd-client.crt", "apiserver-etcd-client.key"}
}

// KeyFiles reads the keys of a cluster from a copy of /etc/kubernetes/pki of a control-plane
// machine, for ImportOptions.Keys.
func KeyFiles(pki fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range slices.Concat(keyFiles(), clientFiles()) {
		data, err := fs.ReadFile(pki, name)
		switch {
		case err == nil:
			files[name] = data
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return keysIn(files)
}

// keysIn returns those of the files that are the keys of the cluster.
func keysIn(files map[string][]byte) (map[string][]byte, error) {
	names := keyFiles()
	if files[keyOfEtcd] == nil && files[clientFiles()[0]] != nil {
		names = slices.Concat(slices.DeleteFunc(names, func(n string) bool { return n == keyOfEtcd }), clientFiles())
	}
	keys, missing := map[string][]byte{}, []string(nil)
	for _, name := range names {
		if keys[name] = files[name]; len(files[name]) == 0 {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("there is no %s", strings.Join(missing, ", "))
	}
	return keys, nil
}

// keysOnMachine reads the keys of the cluster on a machine of its control plane, with SSM Run
// Command, and returns its ID. The error says for each machine why it could not be read.
func keysOnMachine(ctx context.Context, c *cloud.Clients, found *discover.SelfManaged) (keys map[string][]byte, machine string, err error) {
	ctx, cancel := c.Clock.WithTimeout(cloud.Optional(ctx), reading, nil)
	defer cancel()
	reader, err := runcommand.NewReader(c)
	if err != nil {
		return nil, "", err
	}
	planes, missing := found.ControlPlane(), diagnose.Reasons{}
	if len(planes) == 0 {
		return nil, "", errors.New("the cluster has no control-plane machine")
	}
	for _, id := range planes {
		if keys, err = keysOn(ctx, reader, id); err == nil {
			return keys, id, nil
		}
		missing.Add(id, err)
	}
	return nil, "", errors.New(strings.Join(missing.Lines(), "; "))
}

func keysOn(ctx context.Context, reader *runcommand.Reader, machine string) (map[string][]byte, error) {
	out := reader.Read(ctx, []string{machine}, runcommand.Files("/etc/kubernetes/pki", slices.Concat(keyFiles(), clientFiles())...))[machine]
	if out.Err != nil {
		return nil, out.Err
	}
	files, err := runcommand.Unpack(out.Data)
	if err != nil {
		return nil, err
	}
	return keysIn(files)
}
