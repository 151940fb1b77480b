package configfile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/components"
)

// Findings do not show the secrets in a file.
func TestSecretsOfFiles(t *testing.T) {
	const secret = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	for argument, text := range map[string]string{
		"encryption-provider-config": "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets, secrets]\n  providers:\n" +
			"  - {aescbc: {keys: [{name: a, secret: " + secret + "}]}, secretbox: {keys: [{name: a, secret: " + secret + "}]}}\n" +
			"  - {aescbc: {keys: [{name: '', secret: " + secret + "}]}, secre: " + secret + "}\n" +
			"  - {aescbc: {keys: {name: a, secret: " + secret + "}}}\n",
		"token-auth-file":                          secret + ",admin\n",
		"authentication-token-webhook-config-file": "apiVersion: v1\nkind: Config\nusers: [{name: a, user: {token: [" + secret + "]}}]\n",
		"etcd-keyfile":                             secret,
	} {
		for _, minor := range []uint64{28, 34} {
			found := Check(File{Component: components.APIServer, Argument: argument, Text: text, Minor: minor, Read: noFile})
			assert.NotEmpty(t, found, argument)
			assert.NotContains(t, texts(found), secret, argument)
		}
	}
	both := strings.ReplaceAll("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n"+
		"  - {aescbc: {keys: [{name: a, secret: S}]}, secretbox: {keys: [{name: a, secret: S}]}}\n", "S", secret)
	found := texts(Check(File{Component: components.APIServer, Argument: "encryption-provider-config", Text: both, Minor: 34, Read: noFile}))
	assert.Contains(t, found, "resources[0].providers[0]")
	assert.NotContains(t, found, secret)
}
