#!/usr/bin/env bash
# A cluster's life on a simulated AWS: quickstart.sh BINARY MANIFEST
set -euo pipefail
binary=$1 manifest=$2
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
run() {
  printf '\n$ clusterawsadm %s\n' "$*"
  "$binary" "$@" --simulate --simulate-state "$state/account.json"
}
run cluster create -f "$manifest" --yes
run cluster describe -f "$manifest"
run cluster plan -f "$manifest" --detailed-exitcode
run cluster delete -f "$manifest" --yes
run cluster list
