#!/bin/sh
# Creates, shows, plans and deletes a cluster on a simulated AWS account that
# lives in a temporary file: a first look at the program, which is $1.
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
step plan -f $manifest --detailed-exitcode # 2 if there were anything to do
step delete -f $manifest --yes
step list
printf '\nThat was simulated. README.md says how to do the same on a real account.\n'
