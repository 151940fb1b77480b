#!/bin/bash
# A host to reach the cluster's private machines through: it only needs sshd,
# which the image has. It keeps itself up to date.
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install --yes unattended-upgrades
