#!/bin/sh
# hack/completions.sh FOLDER
#
# Writes the completion scripts of all shells. It builds as the release does, so that each package is compiled once.
set -eu

mkdir -p "$1"
CGO_ENABLED=0 go build -trimpath -o "$1/clusterawsadm" ./cmd/clusterawsadm
"$1/clusterawsadm" completion bash > "$1/clusterawsadm.bash"
"$1/clusterawsadm" completion zsh > "$1/_clusterawsadm"
"$1/clusterawsadm" completion fish > "$1/clusterawsadm.fish"
"$1/clusterawsadm" completion powershell > "$1/clusterawsadm.ps1"
rm "$1/clusterawsadm"
