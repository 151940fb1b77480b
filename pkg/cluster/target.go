// Package cluster declares the settings of a run on a cluster, and the types that package reconcile
// returns about a cluster. It contains data only, and makes no calls.
package cluster

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Target is the account of a cluster and the settings of its runs. Only Config is
// required.
type Target struct {
	Config   aws.Config    // credentials and, for OpenByName and List, the region
	Wait     plan.Wait     // what Apply waits for; "" is Infrastructure
	Parallel int           // calls to AWS at the same time, also of all that share a Budget; 0 is 32
	Timeout  time.Duration // how long one resource may take; 0: a multiple of what its kind usually takes

	// Budget is shared with the targets of other clusters, whose runs go on at the same time; nil: with none.
	Budget *Budget

	// Drain drains Nodes before their machines are terminated, and removes members
	// of etcd. Without it machines are only terminated.
	Drain bool
	// NetworkFirst launches machines after their routes to the internet exist. Otherwise
	// those that fetch their boot data from a secret or parameter are launched beside the
	// NAT gateways, and wait for them by themselves.
	NetworkFirst bool
	// NewEtcd permits Apply to begin a new, empty etcd if no machine of the control plane exists any
	// more; otherwise, Apply and Plan are refused. It has to be the name of the cluster.
	NewEtcd string
	// AskCluster makes Delete first delete the Services, Ingresses and volume claims of
	// the cluster, so that its controllers delete what they created in AWS. Otherwise, or
	// if the cluster does not respond, those resources are found by their tags. It makes
	// Status read the Nodes.
	AskCluster bool

	// KMSKey is the KMS key for the cluster's keys and join token, which Apply stores in SSM
	// Parameter Store: an ID, ARN or alias. "" is the AWS managed key aws/ssm, with which
	// every role of the account that can read the parameters can decrypt them.
	KMSKey string

	// CheckPermissions makes Plan ask IAM what the caller lacks of what the plan needs. Apply
	// asks always, unless IgnorePermissions is set, and goes on if IAM does not answer.
	CheckPermissions bool
	// IgnorePermissions makes Apply not ask IAM: its answer may be wrong, because it does not
	// know session policies and conditions of service control policies.
	IgnorePermissions bool

	// Restore is the backup with which Apply makes a new control plane, after all machines of
	// the one before are gone; nil for none.
	Restore *Restore
	// Backup makes Apply back up the cluster before it replaces or removes machines of the control
	// plane, as in an upgrade; nil: no backup.
	Backup *BackupFirst

	Owner    string        // the user of the run, for the lock: "ada@laptop pid 4711"
	LockTTL  time.Duration // when the lock of a dead run expires; 0 is a minute
	StateDir string        // folder for the lock where SSM Parameter Store is denied; "" for none

	// Cost adds to plans what the cluster costs, by the price list of AWS. That needs the IAM
	// action pricing:GetProducts, and ec2:DescribeSpotPriceHistory for the price of spot
	// instances. A plan waits three seconds at most for prices.
	Cost     bool
	CacheDir string // folder in which prices are kept for a day; "" for none

	Log  func(plan.Call) // called after every call to AWS, also concurrently; may be nil
	Warn func(string)    // called with messages for the user; may be nil

	// Clock replaces the system clock where time runs faster: with an emulator of AWS, or
	// in tests. Nil is the system clock.
	Clock Clock
	// Transport carries requests to the API servers of clusters; nil: the network.
	Transport Transport
	// Helm installs the charts of HelmChartProxies; nil: a manifest that has one is refused.
	Helm Helm
}

// Clock returns the time and waits.
type Clock interface {
	Now() time.Time
	// Sleep waits for d. If the context ends before, it returns the cause.
	Sleep(ctx context.Context, d time.Duration) error
}

// Transport returns what carries requests to an API server.
type Transport func(Access) http.RoundTripper

// Access is the address of an API server and the credentials for it.
type Access struct {
	Server           string // "https://host:port"
	CA               []byte // PEM
	Certificate, Key []byte // PEM, of a client; or
	Token            func(context.Context) (string, error)
}
