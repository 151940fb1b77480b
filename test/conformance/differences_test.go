//go:build e2e

package conformance

// difference is an answer of moto that differs from AWS, and the reason.
type difference struct{ question, moto, reason string }

// differences lists where moto differs from AWS. If the simulated AWS differs, fix the
// simulator instead. Bugs that test/moto/sitecustomize.py fixes are not in the list:
// rules for IP protocols without ports, on which moto fails; conditions of bucket
// policies, which it ignores; managed policies of stacks, which it does not delete; the
// instance profile, which only the first of several instances has; two load balancers of
// one name; the interfaces of NAT gateways.
func differences() []difference {
	const nothing = "error (no answer of this service)" // an operation that moto does not support
	return []difference{
		{"vpc: create", "10.0.0.0/16 demo available", "moto: everything is ready at once"},
		{"subnet: its host names", "ip-name", "moto takes the host name type of a subnet and forgets it"},
		{"NAT gateway: create", "available", "moto: everything is ready at once"},
		{"NAT gateway: create again with the same token", "error Resource.AlreadyAssociated", "moto ignores client tokens; the address is in use by the first one"},
		{"elastic IP: release while in use", "ok", "moto deletes in any order"},
		{"subnet: delete under a NAT gateway", "ok", "moto deletes in any order"},
		{"NAT gateway: then", "deleted", "moto: everything is gone at once"},
		{"security group: delete one that a rule names", "ok", "moto deletes in any order"},
		{
			"rule: revoke the one that named the other group",
			"error InvalidGroup.NotFound",
			"follows from the line above: moto keeps the rule and cannot remove it any more",
		},
		{"flow log: delete again", "error InvalidFlowLogId.NotFound", "moto fails the call; the API reference of AWS has a list of what was not deleted"},
		{"tags: the type of an elastic IP", "vpc-elastic-ip", "moto has its own names for the types of elastic IPs and of NAT gateways"},
		{"tags: of an elastic IP that is gone", "1", "moto keeps the tags of what is gone"},
		{"instance: run of a type that is not there", "error InvalidInstanceType.NotFound", "moto has a code of its own; AWS says InvalidParameterValue"},
		{"instance: run in a group that is not there", "ok", "moto does not look at the groups of an interface"},
		{"instance: run with a profile that is not there", "error NoSuchEntity", "moto hands on IAM's code; EC2 says InvalidParameterValue"},
		{"instance: run again with the same token", "the same: false", "moto ignores client tokens"},
		{"instance: start one that runs", "pending", "moto starts every instance, whatever its state"},
		{"instance: its security groups", "0", "moto shows the groups of an interface with the interface alone"},
		{"launch template: create with a blank in its name", "ok", "moto does not check names"},
		{"launch template: delete a version", "error no answer that can be read", "moto does not implement it"},
		{
			"launch template: delete again",
			"error InvalidLaunchTemplateName.NotFoundException",
			"moto has one code for names and IDs; AWS has two (\"Error codes for the Amazon EC2 API\")",
		},
		{"group: create from a template that is not there", "error InvalidLaunchTemplateId.NotFound", "moto hands on EC2's code; Auto Scaling says ValidationError"},
		{"group: create with more machines than it may have", "ok", "moto does not compare the sizes"},
		{"group: create again", "ok", "moto replaces the group"},
		{"group: its machine", "InService Healthy 1 m5.large", "moto tells the default version where the group has $Latest"},
		{"group: delete with machines", "ok", "moto takes every deletion for one by force"},
		{"group: delete by force", "error ValidationError", "follows from the line above"},
		{"security group: delete under an instance", "ok", "moto deletes in any order"},
		{"subnet: delete under an instance", "ok", "moto deletes in any order"},
		{"image: copy again with the same token", "the same: false", "moto ignores client tokens"},
		{"image: the copy", "available (no name) false", "moto: everything is ready at once; it tells neither the source of a copy nor the tags it was to get"},
		{"snapshot: of the copy", "completed false false", "moto: everything is ready at once; it does not encrypt the copy of an image"},
		{"image: own ones of that name", "2", "follows from the ignored token"},
		{"snapshot: when its image is gone", "ok", "moto does not delete the snapshots of an image, whatever it is asked"},
		{"load balancer: its ARN", "app", "moto gives network load balancers the ARNs of application load balancers"},
		{"load balancer: create with a long name", "ok", "moto does not limit names to 32 characters"},
		{"target group: create again", "error DuplicateTargetGroupName", "with AWS the same request succeeds again"},
		{"target group: register an instance that is not there", "ok", "moto does not look whether targets exist"},
		{"target group: its targets", "1", "follows from the line above"},
		{"target group: delete", "error ResourceInUse", "moto takes a target group for in use as long as its load balancer lives"},
		{"target group: delete again", "error ResourceInUse", "follows from the line above; with AWS a second deletion succeeds"},
		{"security group: delete under a load balancer", "ok", "moto deletes in any order"},
		{"parameter: put more than 4 KiB", "ok", "moto does not limit standard parameters to 4 KiB"},
		{"role: create with a document that is none", "ok", "moto does not read trust policies when it makes a role"},
		{"policy: list those of the account", "1 2", "moto counts a policy that is attached again twice"},
		{"policy: delete while attached", "ok", "moto deletes in any order"},
		{"stack: create without capabilities", "ok", "moto does not ask for capabilities"},
		{"stack: then", "CREATE_COMPLETE", "moto: everything is ready at once"},
		{"stack: create again with the same token", "error AlreadyExistsException", "moto ignores client tokens"},
		{"stack: update with the same", "ok", "moto looks for changes in parameters only"},
		{"change set: describe", "CREATE_COMPLETE Profile Add Policy Add Role Add Group Add", "moto takes every change set for that of a new stack"},
		{"change set: describe one that is not there", "error ValidationError", "moto has no code of its own for change sets"},
		{"EKS cluster: create", "ACTIVE arn:aws:eks:us-east-1:123456789012:cluster/demo", "moto: everything is ready at once"},
		{"tagging: find the EKS cluster", "0 true", "moto's tagging API does not know EKS"},
		{"add-on: describe versions", nothing, "moto has no add-ons"},
		{"add-on: describe one that is not there", nothing, "moto has no add-ons"},
		{"add-on: create a version that is not there", nothing, "moto has no add-ons"},
		{"add-on: create", nothing, "moto has no add-ons"},
		{"add-on: create again", nothing, "moto has no add-ons"},
		{"add-on: describe without nodes", nothing, "moto has no add-ons"},
		{"pod identity: create with a role that does not trust pods", nothing, "moto has no pod identities"},
		{"pod identity: list", nothing, "moto has no pod identities"},
		{"node group: create with more wanted than allowed", "ok", "moto does not compare the sizes of a node group"},
		{"node group: create with a role that is not there", "ok", "moto does not look whether the role is there"},
		{"node group: create with two types of instances", "ok", "moto does not look into launch templates"},
		{"node group: create with a template and remote access", "ok", "moto sees only a remote access that is not empty"},
		{
			"EKS tags: of a cluster that is not there",
			"error ResourceNotFoundException",
			"moto has one code for what is not there; AWS has another one for tags (API reference, TagResource)",
		},
		{"parameter: the image of EKS", "error ParameterNotFound", "moto has none of EKS's public parameters"},
		{"EKS cluster: create with a role that is not there", "ok", "moto does not look whether the role is there"},
		{"EKS cluster: create in one zone", "ok", "moto does not look at the subnets"},
		{"rule: delete again", "ok", "moto does not look for the rule; the API reference lists ResourceNotFoundException"},
	}
}
