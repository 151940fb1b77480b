#!/usr/bin/env bash
# hack/recording.sh
#
# Plays the session that docs/recording.svg shows, on a simulated account: a plan, a run
# that is interrupted, the same run again, a deletion. "make recording" records it. clusterawsadm
# has to be on the PATH.
set -euo pipefail

HOME=$(mktemp -d /tmp/XXX)
trap 'rm -rf "$HOME"' EXIT
cd "$HOME"
unset XDG_STATE_HOME XDG_CONFIG_HOME XDG_CACHE_HOME # only what the session itself makes
export HOME CLUSTERAWSADM_SIMULATE=true CLUSTERAWSADM_SIMULATE_SPEED=25

# type shows a command as if somebody typed it.
type() {
	printf '\033[1;32m$\033[0m'
	for word in $1; do
		printf ' %s' "$word"
		sleep 0.12
	done
	sleep 0.4
	echo
}

play() {
	type "$1"
	eval "$1"
	sleep "$2"
}

# The first picture is one that says something: the plan is there at once, also where nothing moves.
clusterawsadm cluster generate demo > demo.yaml
plan=$(script -qec 'stty cols 100; clusterawsadm cluster plan -f demo.yaml --no-pager' /dev/null | tr -d '\r' | tail -14)
printf '\033[1;32m$\033[0m clusterawsadm cluster plan -f demo.yaml\n…\n%s\n' "$plan"
sleep 3
# Ctrl-C, and not a signal that cannot be caught: after that, the next run would wait for a minute until it is certain that
# nobody holds the lock.
type 'clusterawsadm cluster create -f demo.yaml --yes'
clusterawsadm cluster create -f demo.yaml --yes &
sleep 1.8
kill -INT $!
wait $! 2>/dev/null || true
printf '\033[?25h\n\033[1;31m^C\033[0m\n\n'
sleep 1
play 'clusterawsadm cluster create -f demo.yaml --yes  # again' 2.5
play 'clusterawsadm cluster create -f demo.yaml --yes  # and again' 2
play 'clusterawsadm cluster delete demo --yes' 3
