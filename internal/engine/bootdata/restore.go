package bootdata

import (
	"context"
	"time"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Restore is the snapshot of etcd with which a machine begins: an object in a bucket.
type Restore struct {
	Record *graph.Ref[secrets.RestoreState]
}

// linkLasts is how long the link to the object works: machines may wait for a NAT gateway. It ends
// earlier with the session of the caller.
const linkLasts = 2 * time.Hour

func (r *Restore) needs() []graph.Edge {
	if r == nil {
		return nil
	}
	return graph.On(r.Record)
}

// link returns a link to the object; "" without one.
func (r *Restore) link(ctx context.Context, c *cloud.Clients) (string, error) {
	if r == nil {
		return "", nil
	}
	have, ok := r.Record.Found()
	if !ok {
		return "", nil // render says that the data is not known
	}
	signed, err := awss3.NewPresignClient(c.S3).
		PresignGetObject(ctx, &awss3.GetObjectInput{Bucket: &have.Bucket, Key: &have.Object}, awss3.WithPresignExpires(linkLasts))
	if err != nil {
		return "", err
	}
	return signed.URL, nil
}

// of returns what the machine needs.
func (r *Restore) of(keys *boot.PKI, link string) (*boot.Restore, error) {
	have, ok := r.Record.Found()
	if !ok {
		have = secrets.RestoreState{}
	}
	password, err := keys.Password("restore " + have.Database)
	return &boot.Restore{URL: link, SHA256: have.Database, Password: password}, err
}
