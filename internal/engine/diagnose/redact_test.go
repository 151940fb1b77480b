package diagnose

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The secret is in none of these texts after Redacted. It is what is between « and ».
func TestRedacted(t *testing.T) {
	pem := "-----BEGIN RSA PRIVATE KEY-----\n«MIIEowIBAAKCAQEA»\nabc=\n-----END RSA PRIVATE KEY-----"
	b64 := base64.StdEncoding.EncodeToString([]byte("0123456789abcdefghijklmnopqrstuv"))
	for _, text := range []string{
		"kubeadm join --token «abcdef.0123456789abcdef» x",
		"before\n" + pem + "\nafter", "cut off\n" + pem[:60],
		"«MIIEowIBAAKCAQEA»\n«abcdefg=»\n-----END PRIVATE KEY-----",
		"[   1.2] cloud-init[9]: -----BEGIN OPENSSH PRIVATE KEY-----\n[   1.2] cloud-init[9]: «b3BlbnNz»\n[   1.2] cloud-init[9]: -----END OPENSSH PRIVATE KEY-----",
		`key: "-----BEGIN EC PRIVATE KEY-----\n«MHcCAQ»\n-----END EC PRIVATE KEY-----\n"`,
		"key «AKIAIOSFODNN7EXAMPLE» failed", "ASIA: «ASIAIOSFODNN7EXAMPLE»",
		"aws_secret_access_key = «wJalrXUtnFEMI/K7MDENG»", "AWS_SECRET_ACCESS_KEY=«wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»",
		"found «wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY» in the metadata", "AWS_SESSION_TOKEN=«IQoJb3JpZ2luX2VjEJr»",
		`"password": "«hunter2»" error`, `{\"password\":\"«hunter2»\"}`, `password: '«it''s me»'`, `password="«a b \" c»" x`,
		"Authorization: Bearer «eyJhbGciOi»", "Authorization: Basic «dXNlcjpodW50ZXIy»", `-H "Authorization: token «abcd»"`, `"Authorization":"Basic «dXNlcjpodW50ZXIy»"`,
		"Proxy-Authorization: Digest username=u, response=«6629fae4»", "using bearer «abcDEF123456»", "sent Basic «dXNlcjpodW50ZXIy» to it",
		"Authorization: AWS4-HMAC-SHA256 Credential=AK/2026/us-east-1/ec2/aws4_request, SignedHeaders=host, Signature=«5d672d79c15b13162d9279b0855cfba6»",
		"https://s3.amazonaws.com/b/k?X-Amz-Credential=«ASIAQ%2F2026»&X-Amz-Signature=«5d672d79c15b13162d9279b0855cfba6»&X-Amz-Security-Token=«IQoJb3%2F»",
		"clone https://user:«pw»@host/x", "postgres://u:«pw»@db", "amqp://u:«p/w:x»@mq:5672/", "https://«ghp_x»@github.com/a/b", "redis://:«hunter2»@redis:6379", "mongodb://u:«p»@«ss»@h/db",
		`{"auths":{"https://index.docker.io/v1/":{"auth":"«dXNlcjpodW50ZXIy»"}}}`, `{\"auth\":\"«dXNlcjpodW50ZXIy»\"}`,
		"apiKey: «hunter2»", "api_key=«hunter2»", "X-Api-Key: «hunter2»", "client_secret=«hunter2»", "secret: «hunter2»", "  secret: «hunter»", "pwd=«hunter2»", "MYSQL_PWD=«hunter2»", "DB_PASS=«hunter2»", "db-pass: «x1»",
		"passphrase: «hunter2»", "--token «hunter2»", "--token=«hunter2»", "--client-secret «s3»", `["--password","«hunter2»"]`, "-password «hunter2» x", "--api-key '«a b»'",
		"--certificate-key " + "«" + strings.Repeat("0f", 32) + "»", "certificate_key: «" + strings.Repeat("0f", 32) + "»",
		"using «ghp_0123456789abcdefABCDEF0123456789ab» now", "«github_pat_11ABCDEFG0123456789_abcdefghij»", "«glpat-abcdefghij0123456789»", "«xoxb-123456789012-abcdef»",
		"https://hooks.slack.com/services/«T000/B000/XXXX»", "«npm_abcdefghijklmnopqrstuvwxyz0123456789»", "«hvs.CAESIJabcdefghijklmnop»", "«sk_live_abcdefghij0123»",
		"password: «correct horse battery staple»", "password=«correct horse battery» user=x", "password is «hunter2»", "The password was «correct»", "password «hunter2» rejected", "password set to «hunter2».",
		"token is «abc123def456»", "jwt «eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc» end", "token: «k8s-aws-v1.aHR0cHM6Ly9»",
		"ubuntu:«$6$rounds=4096$salt$hash/x»:19000", "passwd: «$2y$10$abcdefghij»", "hashed_passwd: «$6$abc$def»", "echo 'ubuntu:«hunter2»' | chpasswd", "chpasswd: x\npassword: |\n  «hunter2»\nnext: y",
		"curl -u admin:«hunter2» https://x", "machine h login l password «hunter»", "<password>«hunter»</password>", "Set-Cookie: sid=«abc»; Path=/", "Cookie: «a=b»",
		"«" + strings.Repeat("QUJD", 19) + "»", "key «" + b64 + "» x", "aesgcm: «" + b64[:22] + "==»", "encryption_key: «" + b64 + "»", "private_key=«abc»", "client-key-data: «LS0tLS1CRUdJTiBSU0E=»",
		"credentials: «hunter2»", "refresh_token=«abc»&x=y", "?access_token=«abc»&x=y", "auth_token: «hunter2»", "the token: «abc123def»", "data:\n  token: «YWJjZGVm»",
		"PASSWORD=«correct» DB_PASSWORD=«horse» MYSQL_PASSWORD=«staple»", "password2: «x»", "Password for user admin is: «Tr0ub4dor»", "admin password generated: «xK9p»",
		"Set the following 'random' passwords\ncloud-init[1]: ubuntu:«nQ8rGv2pLk»\ncloud-init[1]: root:«hunter2»\nnext", "[upload-certs] Using certificate key:\n«" + strings.Repeat("0f", 32) + "»",
		`"SecretAccessKey" : "«wJalrXUtnFEMI/K7MDENG»", "Token" : "«IQoJb3JpZ2luX2VjECEaCXVz»"`, `token "«abcdef.0123456789abcdef»" rejected`, `Environment="DB_PASSWORD=«pa ss word»" "FOO=bar"`,
		"machine github.com\n  login me\n  password «hunter2»", "//registry.npmjs.org/:_authToken=«deadbeef-0000-1111»", "//npm.example.com/:_auth=«dXNlcjpodW50ZXIy»",
		"https://__token__:«pypi-AgEIcHlwaS5vcmc»@pypi.example.com/simple", "'https://oauth2:«glpat-abcdefghij0123456789»@gitlab.com/x.git/'", `identitytoken = "«aVeryLongTok3n»"`,
		`{"Authorization":["Bearer «abc»"],"X":["y"]}`, `--header="PRIVATE-TOKEN: «abcdefgh»"`, "X-Vault-Token: «s.abcdefgh12345678»", "x-aws-ec2-metadata-token: «AQAEAABBBBCCCC==»",
		"«GOCSPX-abcdefghijklmnopqrstuvwxyz12»", "«AIzaSyA-1234567890abcdefghijklmnopqrstu»", "«1//0gabcdefghijklmnopqrstuvwxyz-ABCDEFG»", "«glsa_abcdefghij0123456789»", "https://discord.com/api/webhooks/«1/abcXYZ»",
		"mysql -u root -p«hunter2» -e x", "sshpass -p «hunter2» ssh x", "docker login -u me -p «hunter2» r", "echo «hunter2» | docker login -u me --password-stdin", "bindpw «hunter2»", "psk=\"«my wifi»\"",
		"keytool -storepass «changeit» -keypass «changeit»", "SECRET_KEY_BASE=«0123abcd»", "PresharedKey=«FpCyhws9cxwWoV4xELtfJvjJN»", "DATABASE_URL=postgresql://app:«hunter2»@db:5432/x?sslmode=require",
		"«AGE-SECRET-KEY-1QQPQQQQ»", `"secret":"«abc»"`, "secret-key:«abc»", "export TOKEN='«a b c»'", "POSTGRES_PASSWORD: «x»",
	} {
		var secrets []string
		for _, part := range strings.Split(text, "«")[1:] {
			secret, _, _ := strings.Cut(part, "»")
			secrets = append(secrets, secret)
		}
		got := Redacted(strings.NewReplacer("«", "", "»", "").Replace(text))
		for _, secret := range secrets {
			assert.NotContains(t, strings.ReplaceAll(got, redacted, "#"), secret, text)
		}
		assert.Contains(t, got, redacted, text)
	}
}

// These lines of kubelets, containerd, cloud-init and API servers have no secret.
func TestNotRedacted(t *testing.T) {
	uid, digest := "5f0f4c1e-8a8b-4b8e-9d52-0c5b2e7a9f10", strings.Repeat("0123456789abcdef", 4)
	for _, text := range []string{
		"error execution phase preflight: i-0720d2a2bcb6c4fe8 ip-10-0-64-5.ec2.internal",
		"Pulled image registry.k8s.io/kube-apiserver:v1.34.2@sha256:" + digest, `"Killing container" containerID="containerd://` + digest + `"`,
		`I1125 19:21:43.000000    1234 kubelet.go:2405] "SyncLoop (PLEG): event for pod" pod="kube-system/coredns-66bc5c9577-abcde" event={"ID":"` + uid + `","Type":"ContainerStarted","Data":"` + digest + `"}`,
		"/var/lib/kubelet/pods/" + uid + "/volumes/kubernetes.io~projected/kube-api-access-x7k2p", "kubepods-burstable-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice",
		"cri-containerd-" + digest + ".scope", `MountVolume.SetUp failed for volume "cert" : secret "webhook-cert" not found`,
		`object "default"/"db-secret": object "default"/"db-secret" not registered`, `couldn't get secret default/db-secret: failed to sync secret cache: timed out waiting for the condition`,
		"token bucket is empty", "waiting for token bucket", "secret/foo mounted", `secret "foo" created`, "failed to fetch secret: not found", "error getting token: connection refused",
		`Secret="kube-system/foo"`, "automountServiceAccountToken: false", "password authentication is disabled", "the password is not set", "token is expired", "bearer token authentication",
		"Basic authentication failed", "PWD=/root", "secret:\n  secretName: x", "secretName: webhook-cert", "tokenExpirationSeconds: 3600", "--token-ttl 24h", "--service-account-private-key-file=/etc/kubernetes/pki/sa.key",
		"--discovery-token-ca-cert-hash sha256:" + digest, "arn:aws:iam::123456789012:role/nodes.cluster-api-provider-aws.sigs.k8s.io", "https://10.0.0.1:6443/api/v1/namespaces/kube-system/secrets?limit=500",
		"git commit 0123456789abcdef0123456789abcdef01234567", "http://169.254.169.254/latest/meta-data/iam/security-credentials/", "docker-pullable://pause@sha256:" + digest,
		"arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/demo-apiserver/50dc6c495c0c9188", "TLSHandshakeTimeoutWhileConnectingToTheServer", "feature NodeLogQuery=false,RotateKubeletServerCertificate=true",
		"node.kubernetes.io/exclude-from-external-load-balancers=", "user@example.com: no such user", "pod uses Token: nil, Secret:nil,", "token: <redacted>", "password: ********", "export TOKEN=$TOKEN", "curl https://example.com/a@b",
		"/opt/cni/bin/aws-vpc-cni-v1.20.4-eksbuild.1/egress-cni", "E1125 memcache.go:265] couldn't get current server API group list: the server has asked for the client to provide credentials",
		"token expired", "secret/kube-system not found", `secret "demo-ca" not found in namespace "default"`, `err="[invalid bearer token, token lookup failed]"`, "check pass; user unknown",
		"Failed password for invalid user admin from 10.0.0.1 port 22 ssh2", "the password was changed for user root", "password for user x is not set", "PasswordAuthentication no",
		"ubuntu : TTY=pts/0 ; PWD=/home/ubuntu ; USER=root ; COMMAND=/bin/ls", `secret aws.cluster.x-k8s.io/f3a9c1d2-0b1e-4c5d-8e6f-7a8b9c0d1e2f-0 not found`,
		"mysql -u root -p -e x", "docker login -u me --password-stdin", "ssh -p 22 host", "mkdir -p /a; docker ps", "arn:aws:sts::123456789012:assumed-role/nodes/i-0abc",
		"i-0abc123def4567890 terminated: Client.InstanceInitiatedShutdown", "sha256:" + digest, "using the certificate key\nand so on", "npm_auth is used",
		"certificate signing request csr-x7k2p: approved", `failed to get "ubuntu" credentials: no providers`, "compass: north", "systemd-tty-ask-password-agent", "[auth] setting up RBAC", "[bootstrap-token] Using token: ",
	} {
		assert.Equal(t, text, Redacted(text))
	}
}
