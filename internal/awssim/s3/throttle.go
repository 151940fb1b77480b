package s3

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are 5,500 reads and 3,500 writes a second ("Best practices design patterns: optimizing Amazon S3 performance" in
// the S3 user guide). AWS has them for each prefix in a bucket; here the account has them once, which is stricter.
func limits() core.Limits {
	return core.Limits{Code: "SlowDown", Of: core.ReadsAndWrites(core.TokenBucket{Size: 5500, Refill: 5500}, core.TokenBucket{Size: 3500, Refill: 3500})}
}
