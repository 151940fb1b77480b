package cluster

// Caller is who calls AWS.
type Caller struct {
	Account string // ID: "123456789012"
	ARN     string // of the user or of the session of a role
}

// CallerRefusal says why AWS refuses calls of the caller, whatever they are for. The zero value
// means that an error has another reason.
type CallerRefusal struct {
	Expired bool     // the credentials were valid, and are not any more
	Invalid bool     // wrong keys, or the region is not enabled in the account
	Denied  []string // IAM actions that the caller lacks, such as "ec2:DescribeVpcs"
}

// Any reports whether AWS has refused the caller.
func (c CallerRefusal) Any() bool { return c.Expired || c.Invalid || len(c.Denied) > 0 }
