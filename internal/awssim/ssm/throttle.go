package ssm

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// throttle rejects a call that exceeds the standard throughput of Parameter Store: 3 writes a second, and 40 reads of all
// kinds together ("AWS Systems Manager endpoints and quotas"; "How do I prevent ThrottlingException errors when I use
// Parameter Store", AWS re:Post). AWS does not publish how many calls it accepts at once; 10 writes and 40 reads are
// assumed. Each region has its own limits.
func (svc *Service) throttle(op, region string, _ any) error {
	ok := true
	switch op {
	case "PutParameter":
		ok = svc.Take(region+"SSM write", 1, 10, 3)
	case "GetParameter", "GetParameters", "GetParametersByPath":
		ok = svc.Take(region+"SSM read", 1, 40, 40)
	}
	if !ok {
		return core.Fail("ThrottlingException", "Rate exceeded")
	}
	return nil
}
