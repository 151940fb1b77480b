package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Member is an etcd member.
type Member struct {
	ID        uint64
	Name      string
	IsLearner bool
	PeerURLs  []string
}

// Members queries the members from the etcd of one instance. It answers only with a
// quorum.
func (u *Laptop) Members(ctx context.Context, m *Machine) ([]Member, error) {
	out, err := u.etcdctl(ctx, m, "member", "list", "-w", "json")
	if err != nil {
		return nil, err
	}
	var answer struct{ Members []Member }
	return answer.Members, json.Unmarshal(out, &answer)
}

// etcdctl runs the real etcdctl, with the keys on the instance.
func (u *Laptop) etcdctl(ctx context.Context, m *Machine, args ...string) ([]byte, error) {
	pki := m.Path("/etc/kubernetes/pki/etcd")
	if _, err := os.Stat(filepath.Join(pki, "healthcheck-client.crt")); err != nil {
		return nil, err
	}
	program, err := filepath.Glob(filepath.Join(u.programs, "etcdctl-v*"))
	if err != nil || len(program) == 0 {
		return nil, fmt.Errorf("no etcdctl in %s: %w", u.programs, err)
	}
	cmd := u.laptop.command(ctx, nil, append([]string{
		program[len(program)-1], "--endpoints", m.etcdURL("2379"), "--cacert", filepath.Join(pki, "ca.crt"),
		"--cert", filepath.Join(pki, "healthcheck-client.crt"), "--key", filepath.Join(pki, "healthcheck-client.key"),
		"--dial-timeout", "2s", "--command-timeout", "3s",
	}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("etcd at %s: %w: %s", m.Address, err, strings.TrimSpace(said.String()))
	}
	return out, nil
}

// At reports whether the member is on an instance.
func (m Member) At(i *Machine) bool { return slices.Contains(m.PeerURLs, i.etcdURL("2380")) }

// etcdURL returns a URL of the etcd of an instance, which has one address.
func (m *Machine) etcdURL(port string) string {
	address := m.Address
	if text, err := os.ReadFile(m.Path("/etc/kubernetes/manifests/etcd.yaml")); err == nil && strings.Contains(string(text), "["+m.IPv6+"]:2380") {
		address = m.IPv6
	}
	return "https://" + net.JoinHostPort(address, port)
}

// Voting returns the names of started voting members.
func Voting(members []Member) (names []string) {
	for _, m := range members {
		if !m.IsLearner && m.Name != "" {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}

// RemoveMember removes a member through the etcd of one instance, as clusterawsadm does
// before it replaces an instance.
func (u *Laptop) RemoveMember(ctx context.Context, by *Machine, id uint64) error {
	_, err := u.etcdctl(ctx, by, "member", "remove", strconv.FormatUint(id, 16))
	return err
}
