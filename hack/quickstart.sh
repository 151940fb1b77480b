#!/bin/sh
# hack/quickstart.sh PROGRAM
#
# Creates, describes, plans and deletes a cluster in a simulated AWS account, which is
# stored in a temporary file.
set -eu

program=$1
manifest=configs/quickstart.yaml
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

step() {
	printf '\n$ clusterawsadm cluster %s\n' "$*"
	"$program" cluster "$@" --simulate --simulate-state "$folder/account.json" --progress "${PROGRESS:-auto}"
}

step create -f $manifest --yes
step describe -f $manifest
step plan -f $manifest --detailed-exitcode # exit code 2 if there are changes
step delete -f $manifest --yes
step list
printf '\nThis was a simulation. docs/guides/first-cluster.md describes how to use a real account.\n'
