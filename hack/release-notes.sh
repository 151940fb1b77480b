#!/bin/sh
# hack/release-notes.sh VERSION
#
# Prints the section of CHANGELOG.md about a version, such as v1.2.3; of a prerelease without a section
# of its own, that of the version that it precedes or "Unreleased".
set -eu

section() {
	awk -v title="$1" '/^## / {inside = ($2 == title); next} inside' "$(dirname "$0")/../CHANGELOG.md" | sed -e '/./,$!d'
}

version=${1#v}
for title in "$version" "${version%%-*}"; do
	notes=$(section "$title")
	if [ -n "$notes" ]; then
		printf '%s\n' "$notes"
		exit 0
	fi
done
case $version in
*-*)
	section Unreleased
	;;
*)
	echo "CHANGELOG.md has no section \"## $version\": rename \"## Unreleased\" first" >&2
	exit 1
	;;
esac
