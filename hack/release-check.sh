#!/bin/sh
# hack/release-check.sh
#
# Builds a snapshot of the release as .goreleaser.yaml says, without publishing anything, and checks its files.
# $GORELEASER is the command. What needs a program that is not installed is left out, and named.
set -eu

goreleaser=${GORELEASER:-goreleaser}
cd "$(dirname "$0")/.."
skip=publish
# without COMMAND... leaves a part of the release out if the command fails.
without() {
	part=$1 name=$2
	shift 2
	if ! "$@" >/dev/null 2>&1; then
		skip=$skip,$part
		echo "without $1: $name is not made" >&2
	fi
}
without sign "the signature" cosign version
without sbom "the SBOM" syft version
without docker "the image" docker info # the engine, too

$goreleaser check
$goreleaser release --snapshot --clean --timeout 2h --skip="$skip"

cd dist
fail() {
	echo "release-check: $*" >&2
	exit 1
}
for os in linux darwin windows; do
	for arch in amd64 arm64; do
		case $os in
		windows) archive=$(ls clusterawsadm_*_${os}_${arch}.zip) list="unzip -Z1" program=clusterawsadm.exe ;;
		*) archive=$(ls clusterawsadm_*_${os}_${arch}.tar.gz) list="tar tzf" program=clusterawsadm ;;
		esac
		$list "$archive" > contents
		for file in "$program" LICENSE README.md CHANGELOG.md completions/clusterawsadm.bash docs/man/clusterawsadm-cluster-create.1; do
			grep -qx "$file" contents || fail "$archive has no $file"
		done
		grep -q "  $archive\$" checksums.txt || fail "checksums.txt has no $archive"
		case ",$skip," in *,sbom,*) ;; *) [ -s "$archive.sbom.json" ] || fail "$archive has no SBOM" ;; esac
	done
done
sha256sum --check --strict --quiet checksums.txt
case ",$skip," in *,sign,*) ;; *) [ -s checksums.txt.sigstore.json ] || fail "checksums.txt is not signed" ;; esac

cask=$(find . -name clusterawsadm-go.rb)
[ -n "$cask" ] || fail "there is no cask"
grep -q 'cask "clusterawsadm-go"' "$cask" || fail "the cask has another name: Homebrew has a formula clusterawsadm"
grep -q com.apple.quarantine "$cask" || fail "the cask leaves the program in quarantine"
krew=$(find . -name clusterawsadm.yaml -path '*krew*')
[ -n "$krew" ] || fail "there is no manifest for krew"

# What is downloaded says what it is.
case "$(uname -s)-$(uname -m)" in
Linux-x86_64)
	tar xzf clusterawsadm_*_linux_amd64.tar.gz clusterawsadm
	./clusterawsadm version -o short
	rm clusterawsadm
	;;
esac
echo "the release has everything"
