package boot

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// TokenDescription identifies the bootstrap tokens of this program in a cluster. Others
// are not renewed.
const TokenDescription = "lets the machines of this cluster join, made by clusterawsadm"

// Files that KeepToken adds to a control-plane machine. /usr is read-only on Flatcar.
const (
	keepTokenName   = "clusterawsadm-join-token" //nolint:gosec // the name of a unit
	keepTokenScript = "/etc/kubernetes/" + keepTokenName + ".sh"
	keepTokenUnits  = "/etc/systemd/system/" + keepTokenName
)

const keepTokenCommand = "systemctl enable --now " + keepTokenName + ".timer"

// keepToken is the script. The two verbs are a duration in seconds and the description of
// the tokens. The script must not contain jinja expressions.
//
//nolint:gosec // a script without secrets
const keepToken = `#!/bin/bash
# Machines that Auto Scaling adds join with the cluster's bootstrap token. This script
# keeps an existing token valid and creates none. To stop it, delete the Secret
# bootstrap-token-* in kube-system.
set -o errexit -o nounset -o pipefail
KUBECTL=(kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 30s --namespace kube-system)
expires=$(date --utc --date '+%d seconds' '+%%Y-%%m-%%dT%%H:%%M:%%SZ')
tokens=$("${KUBECTL[@]}" get secrets --field-selector type=bootstrap.kubernetes.io/token \
  --output 'jsonpath={.items[?(@.data.description=="%s")].metadata.name}')
for token in ${tokens}; do
  "${KUBECTL[@]}" patch secret "${token}" --type merge --patch '{"stringData": {"expiration": "'"${expires}"'"} }'
done
`

const keepTokenService = `[Unit]
Description=Keep the bootstrap token of the cluster valid
ConditionPathExists=/etc/kubernetes/admin.conf
[Service]
Type=oneshot
Environment=HOME=/root PATH=/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=/bin/bash ` + keepTokenScript + `
`

//nolint:gosec // a unit without secrets
const keepTokenTimer = `[Unit]
Description=Keep the bootstrap token of the cluster valid
[Timer]
OnCalendar=*:0/30
RandomizedDelaySec=5min
[Install]
WantedBy=timers.target
`

// KeepToken returns the configuration of a control plane that extends the validity of the
// cluster's bootstrap token to ttl every half hour.
func KeepToken(spec bootstrapv1.KubeadmConfigSpec, ttl time.Duration) bootstrapv1.KubeadmConfigSpec {
	shown := base64.StdEncoding.EncodeToString([]byte(TokenDescription))
	files := append([]bootstrapv1.File{}, spec.Files...)
	for _, f := range []struct{ path, mode, content string }{
		{keepTokenScript, "0700", fmt.Sprintf(keepToken, ttl/time.Second, shown)},
		{keepTokenUnits + ".service", "0644", keepTokenService},
		{keepTokenUnits + ".timer", "0644", keepTokenTimer},
	} {
		files = append(files, bootstrapv1.File{Path: f.path, Owner: "root:root", Permissions: f.mode, Content: strings.TrimSpace(f.content) + "\n"})
	}
	spec.Files = files
	spec.PostKubeadmCommands = append([]string{keepTokenCommand}, spec.PostKubeadmCommands...)
	return spec
}
