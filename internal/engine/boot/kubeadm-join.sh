set -o nounset -o pipefail

ETCD=/etc/kubernetes/manifests/etcd.yaml
FOLDERS=(/etc/kubernetes /var/lib/kubelet)
SAVED=/run/cluster-api/before-kubeadm

say() {
  local line
  line="[$(date --iso-8601=seconds)] kubeadm join: $*"
  echo "${line}"
  if [[ -n ${CONSOLE} ]]; then echo "${line}" >"${CONSOLE}"; fi
}

# kubeadm reset empties folders that are not empty before kubeadm join: they
# may have the keys of the cluster, static pods, or settings of the kubelet.
save() {
  local i
  mkdir -p "${SAVED%/*}"
  mkdir -m 0700 "${SAVED}"
  for i in 0 1; do
    if [[ -d ${FOLDERS[i]} ]]; then
      mkdir "${SAVED}/${i}" && cp --archive --one-file-system "${FOLDERS[i]}/." "${SAVED}/${i}/"
    fi
  done
}

restore() {
  local i
  for i in 0 1; do
    if [[ -d ${SAVED}/${i} ]]; then cp --archive "${SAVED}/${i}/." "${FOLDERS[i]}/"; fi
  done
}

reset() {
  timeout 5m "${RESET[@]}" || say "kubeadm reset failed with exit code $?"
  restore
}

trap 'rm -rf "${SAVED}"' EXIT
save
for ((try = 1; ; try++)); do
  say "attempt ${try}"
  "${JOIN[@]}" && exit 0
  code=$?
  say "attempt ${try} failed with exit code ${code}"
  # kubeadm has added this machine to etcd. A member that comes back without its
  # data can stop the whole cluster, and kubeadm reset deletes the data.
  if [[ -e ${ETCD} ]]; then
    say "gives up: this machine is a member of etcd already, and has to be replaced"
    exit "${code}"
  fi
  if ((SECONDS >= LIMIT)); then
    say "gives up after ${SECONDS} seconds: the join token may expire"
    exit "${code}"
  fi
  reset
  # A longer pause gives a Node that was registered the time to become not
  # ready: kubeadm does not join with the name of a Node that is ready.
  sleep $(((try < 4 ? try * 15 : 60) + RANDOM % 5))
done
