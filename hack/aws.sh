#!/bin/sh
# hack/aws.sh PROGRAM
#
# Creates a small cluster in a real AWS account, checks that a second plan is empty, and
# deletes it. It asks before it spends money. Set AWS_REGION for another region than
# us-east-1, and KEEP=1 to keep the cluster after a failure.
set -eu

program=$1
region=${AWS_REGION:-us-east-1}
export AWS_REGION="$region"
name=smoke-$(date +%s)
manifest=$(mktemp)

account=$(aws sts get-caller-identity --query Account --output text) ||
	{ echo "make aws needs the AWS CLI and credentials in the environment" >&2; exit 3; }

cat >&2 <<TEXT
This creates cluster $name in account $account, region $region: a VPC with three NAT
gateways, a network load balancer and two t3.large instances, for about 20 minutes.
At the list prices of us-east-1 that is about 0.40 USD an hour.
The account needs the instance profiles of 'clusterawsadm bootstrap iam
create-cloudformation-stack'; if they are missing, nothing is created.
TEXT
printf 'Enter the account number to continue: ' >&2
read -r answer
[ "$answer" = "$account" ] || { echo "not confirmed; nothing was changed" >&2; exit 4; }

step() {
	printf '\n$ clusterawsadm cluster %s\n' "$*" >&2
	"$program" cluster "$@"
}

finish() {
	code=$?
	if [ "$code" != 0 ] && [ "${KEEP:-}" = 1 ]; then
		echo "kept: clusterawsadm cluster delete $name --region $region" >&2
	else
		step delete -f "$manifest" --yes --delete-volumes || code=$?
		"$program" resource list --cluster-name "$name" --region "$region" || true
		[ "$code" = 0 ] && echo "Created; a second plan was empty; deleted." >&2
	fi
	rm -f "$manifest"
	exit "$code"
}

"$program" cluster generate "$name" --flavor quickstart --region "$region" > "$manifest"
step plan -f "$manifest"
trap finish EXIT
step create -f "$manifest" --yes --wait api # without a pod network, Nodes do not become ready
step plan -f "$manifest" --detailed-exitcode
step describe -f "$manifest"
