# Puts a snapshot of etcd into the data folder of this machine, before kubeadm init. The argument is
# the configuration of kubeadm.
set -o errexit -o nounset -o pipefail
umask 077
config=$1
manifest=/etc/kubernetes/manifests/etcd.yaml
work=/var/lib/clusterawsadm-restore
pid=
api=http://127.0.0.1:2379

say() {
  echo "restore of etcd: $*"
}

fail() {
  say "$*" >&2
  exit 1
}

# The settings of etcd are those that kubeadm gives to it.
flag() {
  sed -n "s/^ *- --$1=//p" "$work/etcd.yaml"
}

clean() {
  [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
  ! mountpoint -q "$work/image" || ctr --namespace k8s.io images unmount --rm "$work/image" || umount "$work/image" || true
  # An image that is still mounted stays; the data is in its place all the same.
  rm -rf --one-file-system "$work" || say "$work is left"
}
trap clean EXIT
rm -rf "$work"
mkdir -p "$work/image"

kubeadm init phase etcd local --config "$config"
mv "$manifest" "$work/etcd.yaml"
image=$(sed -n 's/^ *image: //p' "$work/etcd.yaml")
data=$(flag data-dir)
if [ -z "$image" ] || [ -z "$data" ]; then
  fail "kubeadm has written no manifest of etcd"
fi
[ ! -e "$data/member" ] || fail "$data has the data of another etcd"

# The URL is a secret, so it is no argument of a command.
loaded=
for ((try = 1; try <= 60; try++)); do
  if printf 'url = "%s"\n' "$URL" | curl --config - --fail --silent --show-error --location --output "$work/sealed"; then
    loaded=yes
    break
  fi
  say "attempt $try to load the snapshot has failed"
  sleep 5
done
[ -n "$loaded" ] || fail "the snapshot cannot be loaded"
openssl enc -d -aes-256-cbc -md sha256 -pass "file:$PASSWORD" -in "$work/sealed" 2>/dev/null | gzip -d >"$work/db" || fail "the snapshot cannot be decrypted"
rm -f "$work/sealed"
echo "$SHA256  $work/db" | sha256sum --check --status || fail "the snapshot is damaged"

# The image of etcd has no shell: its program runs outside of it.
# The list goes through a file: grep would end before ctr has written all of it, and the pipe would fail.
ctr --namespace k8s.io images list -q >"$work/images"
grep -qxF "$image" "$work/images" || kubeadm config images pull --config "$config"
ctr --namespace k8s.io images mount "$image" "$work/image"
etcd=$work/image/usr/local/bin/etcd

# Starts etcd for this script only, with this machine as its only member.
start() {
  "$etcd" --name="$(flag name)" --data-dir="$data" --initial-cluster="$(flag initial-cluster)" \
    --initial-advertise-peer-urls="$(flag initial-advertise-peer-urls)" --listen-peer-urls=http://127.0.0.1:2380 \
    --listen-client-urls=$api --advertise-client-urls=$api "$@" >"$work/log" 2>&1 &
  pid=$!
  for ((try = 1; try <= 120; try++)); do
    if curl --fail --silent $api/health 2>/dev/null | grep -q '"true"'; then
      return
    fi
    kill -0 "$pid" 2>/dev/null || fail "etcd does not start: $(tail -n 1 "$work/log")"
    sleep 0.5
  done
  fail "etcd does not become healthy: $(tail -n 1 "$work/log")"
}

stop() {
  kill "$pid"
  wait "$pid" || true
  pid=
}

# A new etcd makes its log. The database is then replaced, and the log is applied to it at the next start.
start
stop
mv -f "$work/db" "$data/member/snap/db"

# A member that joins gets the log from its beginning, and the database only if the beginning of the
# log is not there any more. So etcd has to take a snapshot, which ends the log: it does so after
# some entries. Each question for alarms is an entry, and changes nothing.
start --snapshot-count=1
for ((try = 1; try <= 120; try++)); do
  if compgen -G "$data/member/snap/*.snap" >/dev/null; then
    break
  fi
  [ "$try" -lt 120 ] || fail "etcd takes no snapshot: $(tail -n 1 "$work/log")"
  curl --fail --silent --data '{"action":"GET"}' $api/v3/maintenance/alarm >/dev/null || true
  sleep 0.1
done
stop
rm -f "$PASSWORD"
say "done"
