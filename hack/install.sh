#!/bin/sh
# hack/install.sh [FOLDER]
#
# Installs a release for this machine into a folder, ~/.local/bin by default, after it has compared the checksum.
#
#   VERSION   the release, such as 1.0.0
#   SHA256    the checksum of the archive; without it, the one in checksums.txt of the release
set -eu

: "${VERSION:?set VERSION to a release, such as 1.0.0}"
version=${VERSION#v}
folder=${1:-$HOME/.local/bin}
case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) echo "install: $(uname -s) is not supported: download the archive by hand" >&2 && exit 1 ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) echo "install: there is no release for $(uname -m)" >&2 && exit 1 ;;
esac

archive=clusterawsadm_${version}_${os}_${arch}.tar.gz
base=${BASE:-https://github.com/clusterawsadm/clusterawsadm/releases/download/v$version}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
curl -fsSL --retry 3 -o "$archive" "$base/$archive"
if [ -n "${SHA256:-}" ]; then
	echo "$SHA256  $archive" > checksum
else
	curl -fsSL --retry 3 -o checksums.txt "$base/checksums.txt"
	grep "  $archive\$" checksums.txt > checksum
fi
if command -v sha256sum >/dev/null; then
	sha256sum --check --status --strict checksum || { echo "install: $archive has another checksum" >&2 && exit 1; }
else
	shasum -a 256 --check --status checksum || { echo "install: $archive has another checksum" >&2 && exit 1; }
fi
tar xzf "$archive" clusterawsadm
mkdir -p "$folder"
install -m 755 clusterawsadm "$folder/clusterawsadm"
echo "clusterawsadm $version is in $folder" >&2
