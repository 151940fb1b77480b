package reconcile

import (
	"context"
	"errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/runcommand"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/discover"
)

// keysOnMachine reads the files with the keys of the cluster on a machine of its control plane,
// with SSM Run Command, and returns its ID.
func keysOnMachine(ctx context.Context, c *cloud.Clients, found *discover.SelfManaged) (files map[string][]byte, machine string, err error) {
	ctx, cancel := context.WithTimeout(cloud.Optional(ctx), reading)
	defer cancel()
	reader, err := runcommand.NewReader(c)
	if err != nil {
		return nil, "", err
	}
	planes := found.ControlPlane()
	online, err := reader.Online(ctx, planes)
	if err != nil {
		return nil, "", err
	}
	err = errors.New("the cluster has no machine of a control plane")
	for _, id := range planes {
		if !online[id] {
			err = errors.New(runcommand.Unreached)
			continue
		}
		if files, err = readKeyFiles(ctx, reader, id); err == nil {
			return files, id, nil
		}
	}
	return nil, "", err
}

// readKeyFiles reads the files with keys in /etc/kubernetes/pki of a machine. The certificate for
// etcd is part of them only if etcd is not on the machines: then its CA has no key there.
func readKeyFiles(ctx context.Context, reader *runcommand.Reader, machine string) (map[string][]byte, error) {
	const client = "apiserver-etcd-client"
	out := reader.Read(ctx, []string{machine}, runcommand.Files("/etc/kubernetes/pki",
		"ca.crt", "ca.key", "etcd/ca.crt", "etcd/ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.key", "sa.pub", client+".crt", client+".key"))[machine]
	if out.Err != nil {
		return nil, out.Err
	}
	files, err := runcommand.Unpack(out.Data)
	if err == nil && len(files["etcd/ca.key"]) > 0 {
		delete(files, client+".crt")
		delete(files, client+".key")
	}
	return files, err
}
