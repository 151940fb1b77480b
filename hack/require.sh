#!/usr/bin/env bash
# hack/require.sh [--packages] TOOL…
#
# Reports which of the tools are not installed, and how to install them; the tool
# "root" is a shell with root permissions. With --packages it prints only the names
# of the missing Debian packages.
set -euo pipefail

package_of() {
	case $1 in
	etcd) echo etcd-server ;;
	ip) echo iproute2 ;;
	node) echo nodejs ;;
	npm) echo npm ;;
	busybox) echo busybox-static ;;
	/usr/lib/cni/bridge) echo containernetworking-plugins ;;
	cloud-init | shellcheck | chromium | git | containerd | runc | iptables | gcc) echo "$1" ;;
	esac
}

how_to_install() {
	case $1 in
	root) echo "run make as root, for example with sudo -E" ;;
	moto_server) echo "pip install 'moto[server]'" ;;
	aws) echo "pip install awscli" ;;
	cfn-lint) echo "pip install cfn-lint" ;;
	*) echo "apt-get install $(package_of "$1")" ;;
	esac
}

is_there() {
	if [[ $1 == root ]]; then
		[[ $(id -u) == 0 ]]
	else
		command -v "$1" >/dev/null
	fi
}

only_packages=
if [[ ${1:-} == --packages ]]; then
	only_packages=yes
	shift
fi
missing=0
for tool in "$@"; do
	if is_there "$tool"; then
		continue
	elif [[ $only_packages ]]; then
		package_of "$tool"
	else
		echo "missing: $tool ($(how_to_install "$tool"))" >&2
		missing=1
	fi
done
exit "$missing"
