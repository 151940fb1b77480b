package awssim

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// keepsTokens reads, from what a machine writes down, how it makes bootstrap tokens
// valid for longer: by a systemd timer that it enables, which runs a script at
// certain minutes. What the script does is taken from it, and not believed of
// anything else.
func keepsTokens(b *Boot, files map[string]string, text string) {
	for path, timer := range files {
		unit, ok := strings.CutPrefix(path, "/etc/systemd/system/")
		if !ok || !strings.HasSuffix(unit, ".timer") || !strings.Contains(text+files["/etc/kubeadm.sh"], "systemctl enable --now "+unit) {
			continue
		}
		every := regexp.MustCompile(`(?m)^OnCalendar=\*:0/(\d+)$`).FindStringSubmatch(timer)
		starts := regexp.MustCompile(`(?m)^ExecStart=/bin/bash (\S+)$`).FindStringSubmatch(files[strings.TrimSuffix(path, ".timer")+".service"])
		if every == nil || starts == nil {
			continue
		}
		lasts := regexp.MustCompile(`'\+(\d+) seconds'`).FindStringSubmatch(files[starts[1]])
		which := regexp.MustCompile(`@\.data\.description=="(.*?)"`).FindStringSubmatch(files[starts[1]])
		if lasts == nil || which == nil {
			continue
		}
		minutes, _ := strconv.Atoi(every[1]) // they are digits
		seconds, _ := strconv.Atoi(lasts[1]) // they are digits
		b.KeepsEvery, b.KeepsFor, b.KeepsThose = time.Duration(minutes)*time.Minute, time.Duration(seconds)*time.Second, which[1]
	}
}

// settleTokens has control planes keep tokens valid, each at its time.
func (a *AWS) settleTokens() {
	now := a.now()
	for {
		var who *Instance
		var at time.Time
		for i := range a.Instances() {
			if next := a.keepsNext(i); !next.IsZero() && !next.After(now) && (who == nil || next.Before(at)) {
				who, at = i, next
			}
		}
		if who == nil {
			return
		}
		who.Boot.Kept = at
		a.state.Kubernetes[who.Boot.Host].KeepTokens(at, who.Boot.KeepsThose, who.Boot.KeepsFor)
	}
}

// keepsNext is when a machine next keeps the tokens of its cluster; zero: never.
func (a *AWS) keepsNext(i *Instance) (at time.Time) {
	b := i.Boot
	if b == nil || b.KeepsEvery == 0 || b.Failed != "" || b.Joined.IsZero() || a.state.Kubernetes[b.Host] == nil {
		return at
	}
	next := later(b.Kept, b.Joined).Truncate(b.KeepsEvery).Add(b.KeepsEvery)
	if !i.Terminating.IsZero() && next.After(i.Terminating) {
		return at
	}
	return next
}
