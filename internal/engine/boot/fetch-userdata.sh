set -o errexit -o nounset -o pipefail
umask 077
PATH="${PATH}:/usr/local/bin:/snap/bin"

FILE=/etc/secret-userdata.txt
TRIES=10
DELAY=10 # seconds
CONSOLE=/dev/console
APPLIED=/run/cluster-api/placeholder

# Prints a line, also to the console: cloud-init (22.4, for example) captures the
# output of a boothook and discards it.
say() {
  local line
  line="[$(date --iso-8601=seconds)] user data: $*"
  echo "${line}"
  if [[ -w ${CONSOLE} ]]; then echo "${line}" >>"${CONSOLE}"; fi
}

die() {
  say "$*" >&2
  exit 1
}

# Waits before the next try. The time varies, so that many machines do not retry
# at the same moment.
pause() { sleep $((DELAY + RANDOM % 5)); }

# Runs the AWS CLI on one of its services.
call() {
  local service=$1
  shift
  if [[ -n ${ENDPOINT} ]]; then
    aws "${service}" --cli-connect-timeout 10 --endpoint-url "${ENDPOINT}" --region "${REGION}" "$@"
  else
    aws "${service}" --cli-connect-timeout 10 --region "${REGION}" "$@"
  fi
}

# Whether this machine has a connection to ${PROBE}. A program, because it also
# runs without this script.
CONNECTS="timeout 5 bash -c ': <>/dev/tcp/${PROBE%:*}/${PROBE##*:}' 2>/dev/null"

# Waits for a connection: this machine may have booted before the NAT gateway of
# its subnet is available.
await_network() {
  local began=${SECONDS} next=${SECONDS}
  if [[ -z ${PROBE} || -n ${HTTPS_PROXY:-${https_proxy:-}} ]]; then return 0; fi
  until eval "${CONNECTS}"; do
    if ((SECONDS - began >= WAIT)); then
      say "no connection to ${PROBE} after ${WAIT} seconds: going on without"
      return 0
    fi
    if ((SECONDS >= next)); then
      next=$((SECONDS + 60))
      say "waiting for a connection to ${PROBE}, for up to ${WAIT} seconds"
    fi
    sleep 5
  done
}

# Boots this machine again as soon as it has a connection, if it has none now.
boot_again() {
  if [[ -z ${PROBE} ]] || eval "${CONNECTS}"; then return 0; fi
  say "this machine boots again when it has a connection to ${PROBE}" >&2
  systemd-run --unit clusterawsadm-boot-again bash -c "until ${CONNECTS}; do sleep 15; done; cloud-init clean --reboot"
}

# Says on the console if cloud-init does not apply what was fetched: from 24.2 on,
# starting its service again may do nothing, and succeed (CAPA issue 5115). A file in
# /run shows whether it was applied since the machine has booted.
watch_applied() {
  if ! grep --quiet "${APPLIED}" "${FILE}"; then return 0; fi
  systemd-run --unit clusterawsadm-applied bash -c "sleep 300; test -e ${APPLIED} || echo 'user data: fetched, but cloud-init has not applied it' >>${CONSOLE}" || true
}

# Writes chunk $1 to file $2, decoded.
fetch_once() {
  local text
  if [[ ${BACKEND} == secrets-manager ]]; then
    text=$(call secretsmanager get-secret-value --output text --query SecretBinary --secret-id "${PREFIX}-$1") || return 1
  else
    text=$(call ssm get-parameter --output text --query Parameter.Value --with-decryption --name "${PREFIX}/$1") || return 1
  fi
  base64 -d <<<"${text}" >"$2"
}

fetch() {
  local try
  for ((try = 1; try <= TRIES; try++)); do
    if fetch_once "$1" "$2"; then return 0; fi
    say "chunk $1: try ${try} of ${TRIES} to fetch it failed" >&2
    pause
  done
  return 1
}

# Deletes chunk $1 in AWS.
remove_once() {
  if [[ ${BACKEND} == secrets-manager ]]; then
    call secretsmanager delete-secret --force-delete-without-recovery --secret-id "${PREFIX}-$1" >/dev/null
  else
    call ssm delete-parameter --name "${PREFIX}/$1"
  fi
}

remove() {
  local try
  for ((try = 1; try <= TRIES; try++)); do
    if remove_once "$1"; then return 0; fi
    say "chunk $1: try ${try} of ${TRIES} to delete it failed" >&2
    pause
  done
  return 1
}

# A boothook runs on every boot, and again after the restart below.
if [[ -f ${FILE} ]]; then
  say "already there"
  exit 0
fi
command -v aws >/dev/null || die "this image has no AWS CLI, which is needed to fetch the bootstrap data"
await_network

for ((i = 0; i < CHUNKS; i++)); do
  if ! fetch "${i}" "${FILE}.${i}"; then
    boot_again
    die "chunk ${i} of ${PREFIX} cannot be fetched"
  fi
done
for ((i = 0; i < CHUNKS; i++)); do
  cat "${FILE}.${i}"
  rm -f "${FILE}.${i}"
done >"${FILE}.gz"
gzip --test "${FILE}.gz" || die "what was fetched from ${PREFIX} is damaged"

# Bootstrap data must not stay behind where this machine's role can read it.
if [[ ${KEEP} == no ]]; then
  for ((i = 0; i < CHUNKS; i++)); do
    remove "${i}" || die "chunk ${i} of ${PREFIX} cannot be deleted"
  done
fi

gzip --decompress --stdout "${FILE}.gz" >"${FILE}.new"
rm -f "${FILE}.gz"
mv "${FILE}.new" "${FILE}"

# The include in the second part of the message was looked up before this
# script ran, and was missing. Images made for Cluster API with a newer
# cloud-init read the file by themselves, and comment out the next command by
# searching for its text: it must stay alone on its line, and be the only place
# with that text.
watch_applied
say "written, cloud-init starts again"
systemctl restart cloud-init || die "cloud-init cannot be started again: the image is not made for Cluster API, set cloudInit.insecureSkipSecretsManager"
exit 0
