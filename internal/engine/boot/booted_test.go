package boot

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bootedWith is a cloud-config as Cluster API makes it for a worker.
const bootedWith = `## template: jinja
#cloud-config

write_files:
-   path: /etc/motd
    owner: root:root
    permissions: '0640'
    content: |
      hello
      {empty}
-   path: /etc/secret
    content: |
      SECRET
-   path: /run/kubeadm/kubeadm-join-config.yaml
    content: |
      ---
      apiVersion: kubeadm.k8s.io/v1beta4
      kind: JoinConfiguration
      discovery:
        bootstrapToken:
          token: abcdef.0123456789abcdef
      nodeRegistration:
        name: '{{ ds.meta_data.local_hostname }}'
        imagePullPolicy: IfNotPresent
        taints:
        - effect: NoSchedule
          key: node.cluster.x-k8s.io/uninitialized
-   path: /run/cluster-api/placeholder
    content: "This placeholder file is used to create the /run/cluster-api sub directory"
runcmd:
  - 'echo before'
  - [echo, list]
  - kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml && echo success > /run/cluster-api/bootstrap-success.complete
  - 'echo after'
`

// User data is read back as it is, and in the messages that cloud-init stores.
func TestParseBooted(t *testing.T) {
	bootedWith := strings.ReplaceAll(bootedWith, "{empty}", "") // Cluster API indents all lines
	const head = "From nobody\nContent-Type: multipart/mixed; boundary=\"===1==\"\nMIME-Version: 1.0\n\n--===1==\n"
	hook := "Content-Type: text/cloud-boothook\n\n#cloud-boothook\necho\n--===1==\n"
	for name, data := range map[string]string{
		"plain":   bootedWith,
		"message": strings.TrimPrefix(head, "From nobody\n") + hook + "Content-Type: text/jinja2\n\n" + bootedWith + "\n--===1==--\n",
		"base64":  strings.TrimPrefix(head, "From nobody\n") + "Content-Type: text/jinja2\nContent-Transfer-Encoding: base64\n\n" + base64.StdEncoding.EncodeToString([]byte(bootedWith)) + "\n--===1==--\n",
	} {
		b, err := ParseBooted([]byte(data), func(s string) bool { return strings.Contains(s, "SECRET") })
		require.NoError(t, err, name)
		require.Len(t, b.Spec.Files, 1, name)
		assert.Equal(t, "/etc/motd", b.Spec.Files[0].Path)
		assert.Equal(t, "hello\n", b.Spec.Files[0].Content)
		assert.Equal(t, "0640", b.Spec.Files[0].Permissions)
		assert.Equal(t, []string{"echo before"}, b.Spec.PreKubeadmCommands)
		assert.Equal(t, []string{"echo after"}, b.Spec.PostKubeadmCommands)
		join := b.Spec.JoinConfiguration
		assert.Equal(t, "{{ ds.meta_data.local_hostname }}", join.NodeRegistration.Name)
		assert.Nil(t, join.NodeRegistration.Taints)
		assert.Empty(t, join.NodeRegistration.ImagePullPolicy)
		assert.Empty(t, join.Discovery)
		assert.Equal(t, []string{"file /etc/secret, which may contain a secret", "a command, which may contain a secret"}, b.LeftOut)
	}
	for _, other := range []string{"", "#!/bin/sh\n", "#cloud-config\n{}", "#cloud-config\nwrite_files: secret\n", strings.ReplaceAll(bootedWith, "echo success", "true")} {
		_, err := ParseBooted([]byte(other), func(string) bool { return false })
		require.Error(t, err, other)
		assert.NotContains(t, err.Error(), "secret")
	}
}
