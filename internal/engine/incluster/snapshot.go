package incluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/etcd"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// Snapshot is a snapshot of etcd that was checked.
type Snapshot struct {
	File    *files.Temporary // the database; the caller closes it
	Info    etcd.Info
	Version string   // of etcd
	Member  string   // that it is of: the name of its Node
	Members []string // names of all members
}

const etcdPort = 2379

// snapshotIdle is how long etcd may send nothing.
const snapshotIdle = time.Minute

// The tries to take a snapshot: a load balancer sends to a lost machine for a while.
const (
	snapshotTries = 5
	snapshotPause = 5 * time.Second
)

// TakeSnapshot takes a snapshot of etcd from a member that is healthy. It connects to etcd by the
// port forwarding of the API server, with a certificate of etcd's CA, as Cluster API's kubeadm
// control plane does.
func TakeSnapshot(ctx context.Context, c *cloud.Clients, k *kube.Client, keys *boot.PKI) (s *Snapshot, err error) {
	for try := range snapshotTries {
		if try > 0 {
			if err := c.Clock.Sleep(ctx, snapshotPause); err != nil {
				return nil, err
			}
		}
		if s, err = takeSnapshot(ctx, c, k, keys); err == nil || kube.Rejected(err) {
			return s, err
		}
	}
	return nil, err
}

func takeSnapshot(ctx context.Context, c *cloud.Clients, k *kube.Client, keys *boot.PKI) (*Snapshot, error) {
	pods, err := healthyMembers(ctx, k)
	if err != nil {
		return nil, fmt.Errorf("pods of etcd: %w", err)
	}
	if len(pods) == 0 {
		return nil, errors.New("no pod of etcd is ready")
	}
	var failed error
	for _, p := range pods {
		s, err := snapshotOf(ctx, c, k, keys, p)
		if err == nil {
			return s, nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", p.Spec.NodeName, err))
	}
	return nil, failed
}

// etcdOf returns a client of the etcd in a pod. It connects by the port forwarding of the API server.
func etcdOf(k *kube.Client, pod corev1.Pod, config *tls.Config) *etcd.Client {
	return etcd.NewClient(func(ctx context.Context) (net.Conn, error) {
		return k.Forward(context.WithoutCancel(ctx), pod.Namespace, pod.Name, etcdPort)
	}, config)
}

// snapshotOf takes a snapshot of one member.
func snapshotOf(ctx context.Context, c *cloud.Clients, k *kube.Client, keys *boot.PKI, pod corev1.Pod) (*Snapshot, error) {
	config, err := keys.EtcdTLS(c.Now())
	if err != nil {
		return nil, err
	}
	member := etcdOf(k, pod, config)
	defer member.Close()
	ctx, progress := c.Clock.Watch(ctx, snapshotIdle, fmt.Errorf("etcd has sent nothing for %s", snapshotIdle))
	defer progress.Stop()
	status, err := member.Status(ctx)
	switch {
	case err != nil:
		return nil, err
	case status.Learner || status.Leader == 0:
		return nil, errors.New("it is a learner, or knows no leader")
	}
	s := &Snapshot{Version: status.Version, Member: pod.Spec.NodeName}
	if s.Members, err = member.Members(ctx); err != nil {
		return nil, err
	}
	if s.File, err = files.NewTemporary(); err != nil {
		return nil, err
	}
	if err = member.Snapshot(ctx, io.MultiWriter(s.File, progress)); err == nil {
		s.Info, err = etcd.Check(s.File)
	}
	if err != nil {
		return nil, errors.Join(err, s.File.Close())
	}
	return s, nil
}
