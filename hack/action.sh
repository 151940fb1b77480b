#!/bin/sh
# hack/action.sh
#
# The step of the GitHub Action (action.yml). MODE is install, plan or create; VERSION is the release, MANIFEST and PLAN are
# files, ARGUMENTS more flags of the command, TIMEOUT how long create may take.
set -eu

folder=${RUNNER_TEMP:?}/clusterawsadm
# Another version may be installed, or upstream's program, which has the same name.
if [ "$(clusterawsadm version -o short 2>/dev/null)" != "v${VERSION#v}" ]; then
	"$(dirname "$0")/install.sh" "$folder"
	echo "$folder" >> "$GITHUB_PATH"
	PATH=$folder:$PATH
fi
case $MODE in
install) ;;
plan)
	code=0
	# shellcheck disable=SC2086 # several flags
	clusterawsadm cluster plan -f "$MANIFEST" --strict --to "$PLAN" -o markdown --detailed-exitcode $ARGUMENTS > "$PLAN.md" || code=$?
	cat "$PLAN.md" >> "$GITHUB_STEP_SUMMARY"
	case $code in
	0) echo "changes=false" >> "$GITHUB_OUTPUT" ;;
	2) echo "changes=true" >> "$GITHUB_OUTPUT" ;;
	*) exit "$code" ;;
	esac
	;;
create)
	# shellcheck disable=SC2086
	clusterawsadm cluster create "$PLAN" --timeout "$TIMEOUT" $ARGUMENTS
	;;
*)
	echo "mode: $MODE is none of install, plan, create" >&2
	exit 3
	;;
esac
