package kubernetes

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ssm"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// RunScript simulates a script of Run Command on an instance. It knows three scripts: exit with a code; one that prints a part of
// the output of a command, compressed and encrypted, with the commands of output; and one that runs a
// command of a user (userScript). Any other script fails.
func (svc *Service) RunScript(instance, script string) ssm.Result {
	i := svc.EC2.Instance(instance)
	if i == nil || i.Boot == nil {
		return ssm.Result{Code: 1, Err: "the machine does not run"}
	}
	if code, is := strings.CutPrefix(script, "exit "); is {
		n, _ := strconv.ParseInt(code, 10, 32)
		return ssm.Result{Code: int32(n)}
	}
	if words, ok := userScript(script); ok {
		return svc.runWords(i, words)
	}
	command, from, public, ok := scriptOf(script)
	if !ok {
		return ssm.Result{Code: 127, Err: "sh: this script is not simulated"}
	}
	content, err := svc.output(i, command)
	if err != nil {
		return ssm.Result{Code: 1, Err: err.Error()}
	}
	out, err := sealed(content, from, public)
	if err != nil {
		return ssm.Result{Code: 1, Err: err.Error()}
	}
	return ssm.Result{Out: out}
}

// scriptOf reads the command, the position and the key of a script, if it does all the steps that
// are simulated.
func scriptOf(script string) (command string, from int, public *rsa.PublicKey, ok bool) {
	for _, step := range []string{
		"set -eu\n", "packed() { content | gzip -n; }\n", "password=$(openssl rand -hex 32)\n", "openssl pkeyutl -encrypt -pubin -inkey /dev/fd/3 -pkeyopt rsa_padding_mode:oaep -pkeyopt rsa_oaep_md:sha256 3<<END | openssl base64 -A\n",
		`printf '%s %s\n' "$(packed | wc -c)" "$(packed | sha256sum | cut -c 1-64)"` + "\n", `packed | tail -c "+$((from + 1))" | head -c 16000` + "\n",
		"openssl enc -aes-256-cbc -md sha256 -salt -pass env:password 2>/dev/null | openssl base64 -A\n", "echo 'end of output'\n",
	} {
		if !strings.Contains(script, step) {
			return "", 0, nil, false
		}
	}
	content := regex.Of(`(?m)^content\(\) \{ (.*); \}$`).FindStringSubmatch(script)
	position := regex.Of(`(?m)^from=(\d+)$`).FindStringSubmatch(script)
	_, text, _ := strings.Cut(script, "public='")
	text, _, _ = strings.Cut(text, "'")
	block, _ := pem.Decode([]byte(text + "\n"))
	if content == nil || position == nil || block == nil {
		return "", 0, nil, false
	}
	from, _ = strconv.Atoi(position[1])
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	public, ok = key.(*rsa.PublicKey)
	return content[1], from, public, err == nil && ok
}

// sealed does what the script does with the output of its command.
func sealed(content []byte, from int, public *rsa.PublicKey) (string, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(content); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	raw, salt := make([]byte, 32), make([]byte, 8)
	_, _ = rand.Read(raw)
	_, _ = rand.Read(salt)
	password := []byte(hex.EncodeToString(raw))
	first, err := rsa.EncryptOAEP(sha256.New(), rand.Reader, public, password, nil)
	if err != nil {
		return "", err
	}
	data := packed.Bytes()
	from = min(from, len(data))
	plain := fmt.Appendf(nil, "%d %x\n", len(data), sha256.Sum256(data))
	plain = append(plain, data[from:min(len(data), from+16000)]...)
	pad := aes.BlockSize - len(plain)%aes.BlockSize
	plain = append(plain, bytes.Repeat([]byte{byte(pad)}, pad)...)
	key := sha256.Sum256(bytes.Join([][]byte{password, salt}, nil))
	iv := sha256.Sum256(bytes.Join([][]byte{key[:], password, salt}, nil))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return "", err
	}
	cipher.NewCBCEncrypter(block, iv[:aes.BlockSize]).CryptBlocks(plain, plain)
	second := append(append([]byte("Salted__"), salt...), plain...)
	return base64.StdEncoding.EncodeToString(first) + "\n" + base64.StdEncoding.EncodeToString(second) + "\nend of output\n", nil
}

// output returns the output of a command on a machine.
func (svc *Service) output(i *ec2.Instance, command string) ([]byte, error) {
	if m := regex.Of(`^journalctl --unit kubelet --no-pager --output short-iso --lines 1000 --until '[^']* UTC' \| tail -c 60000$`).
		FindString(command); m != "" {
		return []byte(svc.kubeletJournal(i)), nil
	}
	if command == "tail -c 60000 /var/log/cloud-init-output.log" {
		text := i.Boot.Output()
		return []byte(text[max(0, len(text)-60000):]), nil
	}
	if command == "cat /var/lib/cloud/instance/user-data.txt.i" {
		return processed(i)
	}
	if m := regex.Of(`^cd (/\S+) && find (.+) -maxdepth 0 -print0 2>/dev/null \| xargs -0 tar -cf -$`).FindStringSubmatch(command); m != nil {
		return svc.archive(i, m[1], strings.Fields(m[2]))
	}
	return nil, errors.New("sh: this command is not simulated: " + command)
}

// processed returns the user data of a machine as cloud-init stores it: a MIME message. On a
// machine with Ignition there is none.
func processed(i *ec2.Instance) ([]byte, error) {
	data, err := inflated(i.Boot.Data)
	if err != nil || len(data) == 0 || isIgnition(data) {
		return nil, errors.New("cat: /var/lib/cloud/instance/user-data.txt.i: No such file or directory")
	}
	const boundary = "===============0123456789=="
	head := "Content-Type: multipart/mixed; boundary=\"" + boundary + "\"\nMIME-Version: 1.0\nNumber-Attachments: 1\n\n--" + boundary + "\n"
	part := "Content-Type: text/jinja2\nMIME-Version: 1.0\nContent-Disposition: attachment; filename=\"part-001\"\n\n"
	return fmt.Appendf(nil, "%s%s%s\n--%s--\n", head, part, data, boundary), nil
}

// kubeletJournal are messages of the kubelet.
func (svc *Service) kubeletJournal(i *ec2.Instance) string {
	if i.Boot.Host == "" {
		return "-- No entries --\n"
	}
	at, node := i.Boot.At.UTC(), svc.nodeName(i)
	say := func(text string) string {
		return at.Format("2006-01-02T15:04:05-0700") + " " + node + " kubelet[2114]: " + text + "\n"
	}
	text := say(`"Started kubelet"`) + say(fmt.Sprintf("bootstrap token %q", i.Boot.Token))
	if i.Boot.Joined.IsZero() {
		return text + say(`"Unable to register node with API server" err="dial tcp: i/o timeout" node="`+node+`"`)
	}
	at = i.Boot.Joined.UTC()
	return text + say(`"Successfully registered node" node="`+node+`"`)
}

// archive returns a tar archive of files in a folder of a machine. Files that do not exist are
// skipped.
func (svc *Service) archive(i *ec2.Instance, folder string, names []string) ([]byte, error) {
	files, err := svc.filesOf(i)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, n := tar.NewWriter(&out), 0
	for _, name := range names {
		text, ok := files[folder+"/"+name]
		if !ok {
			continue
		}
		n++
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: i.Boot.At}); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return nil, err
		}
	}
	if n == 0 {
		return nil, errors.New("tar: Cowardly refusing to create an empty archive")
	}
	return out.Bytes(), w.Close()
}

// filesOf returns the files that cloud-init has written on a machine, by their paths.
func (svc *Service) filesOf(i *ec2.Instance) (map[string]string, error) {
	data, err := inflated(i.Boot.Data)
	if err != nil || len(data) == 0 {
		return map[string]string{}, err
	}
	return readFiles(data)
}
