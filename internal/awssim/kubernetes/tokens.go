package kubernetes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// keepsTokens finds, in the files of a machine, how it renews bootstrap tokens: with a
// systemd timer that runs a script at certain minutes. The settings are read from that
// script.
func keepsTokens(b *ec2.Boot, files map[string]string, text string) {
	for path, timer := range files {
		unit, ok := strings.CutPrefix(path, "/etc/systemd/system/")
		if !ok || !strings.HasSuffix(unit, ".timer") || !strings.Contains(text+files["/etc/kubeadm.sh"], "systemctl enable --now "+unit) {
			continue
		}
		every := regex.Of(`(?m)^OnCalendar=\*:0/(\d+)$`).FindStringSubmatch(timer)
		starts := regex.Of(`(?m)^ExecStart=/bin/bash (\S+)$`).FindStringSubmatch(files[strings.TrimSuffix(path, ".timer")+".service"])
		if every == nil || starts == nil {
			continue
		}
		lasts := regex.Of(`'\+(\d+) seconds'`).FindStringSubmatch(files[starts[1]])
		which := regex.Of(`@\.data\.description=="(.*?)"`).FindStringSubmatch(files[starts[1]])
		if lasts == nil || which == nil {
			continue
		}
		minutes, _ := strconv.Atoi(every[1]) // digits, by the pattern
		seconds, _ := strconv.Atoi(lasts[1]) // digits, by the pattern
		b.KeepsEvery, b.KeepsFor, b.KeepsThose = time.Duration(minutes)*time.Minute, time.Duration(seconds)*time.Second, which[1]
	}
}

// settleTokens renews tokens on control planes, each at its time.
func (svc *Service) settleTokens() {
	now := svc.Now()
	for {
		var who *ec2.Instance
		var at time.Time
		for i := range svc.EC2.Instances() {
			if next := svc.keepsNext(i); !next.IsZero() && !next.After(now) && (who == nil || next.Before(at)) {
				who, at = i, next
			}
		}
		if who == nil {
			return
		}
		who.Boot.Kept = at
		svc.clusters[who.Boot.Host].KeepTokens(at, who.Boot.KeepsThose, who.Boot.KeepsFor)
	}
}

// keepsNext returns when a machine next renews the tokens of its cluster; zero: never.
func (svc *Service) keepsNext(i *ec2.Instance) (at time.Time) {
	b := i.Boot
	if b == nil || b.KeepsEvery == 0 || b.Failed != "" || b.Joined.IsZero() || svc.clusters[b.Host] == nil {
		return at
	}
	next := later(b.Kept, b.Joined).Truncate(b.KeepsEvery).Add(b.KeepsEvery)
	if !i.Terminating.IsZero() && next.After(i.Terminating) {
		return at
	}
	return next
}

// bootstrapToken has the fields of a token in an InitConfiguration that are simulated.
type bootstrapToken struct {
	Token, TTL, Expires, Description string
	Usages, Groups                   []string
}

// tokensRefused returns what kubeadm finds wrong in tokens (ValidateBootstrapTokens in
// cmd/kubeadm/app/apis/kubeadm/validation).
func tokensRefused(tokens []bootstrapToken) string {
	for _, t := range tokens {
		if t.TTL != "" && t.Expires != "" {
			return "kubeadm: bootstrapTokens: the BootstrapToken .TTL and .Expires fields are mutually exclusive"
		}
		for _, g := range t.Groups {
			if !regex.Of(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`).MatchString(g) {
				return fmt.Sprintf("kubeadm: bootstrapTokens.groups: Invalid value: bootstrap group %q is invalid", g)
			}
		}
		if len(t.Groups) > 0 && len(t.Usages) > 0 && !slices.Contains(t.Usages, "authentication") {
			return "kubeadm: bootstrapTokens.groups: Invalid value: token groups cannot be specified unless --usages includes \"authentication\""
		}
	}
	return ""
}
