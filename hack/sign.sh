#!/bin/sh
# hack/sign.sh FILE BUNDLE
#
# Signs a file. In GitHub Actions, the identity of the workflow signs. Elsewhere, in 'make release-check', it is a key that is
# thrown away: it shows that the signature can be made and verified, and nothing else.
set -eu

if [ -n "${ACTIONS_ID_TOKEN_REQUEST_URL:-}" ]; then
	exec cosign sign-blob --yes --bundle="$2" "$1"
fi
keys=$(mktemp -d)
trap 'rm -rf "$keys"' EXIT
export COSIGN_PASSWORD=
(cd "$keys" && cosign generate-key-pair 2>/dev/null)
cosign sign-blob --yes --tlog-upload=false --key "$keys/cosign.key" --bundle="$2" "$1" >/dev/null
cosign verify-blob --insecure-ignore-tlog --key "$keys/cosign.pub" --bundle="$2" "$1"
