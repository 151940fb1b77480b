package lab

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"time"
)

// healthCheck is the health check of a target group.
type healthCheck struct {
	Protocol  string `xml:"HealthCheckProtocol"` // TCP or HTTPS
	Path      string `xml:"HealthCheckPath"`
	Interval  int    `xml:"HealthCheckIntervalSeconds"`
	Timeout   int    `xml:"HealthCheckTimeoutSeconds"`
	Healthy   int    `xml:"HealthyThresholdCount"`
	Unhealthy int    `xml:"UnhealthyThresholdCount"`
}

// probe makes one health check of a target.
func (h healthCheck) probe(ctx context.Context, from namespace, target string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(h.Timeout)*time.Second)
	defer cancel()
	address := net.JoinHostPort(target, apiPort)
	if h.Protocol == "TCP" {
		c, err := from.dial(ctx, "tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
	client := http.Client{Transport: &http.Transport{
		DialContext: from.dial, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // load balancers do not validate the certificates of targets
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+h.Path, nil)
	if err != nil {
		return false
	}
	got, err := client.Do(r)
	if err != nil {
		return false
	}
	_ = got.Body.Close()
	return got.StatusCode >= 200 && got.StatusCode < 400
}

// health is the health of one target. A new target is not healthy.
type health struct {
	healthy bool
	differ  int // number of consecutive checks with another result
}

// note applies the result of a check.
func (t *health) note(h healthCheck, passed bool) {
	if passed == t.healthy {
		t.differ = 0
		return
	}
	t.differ++
	if t.differ >= h.Healthy && passed || t.differ >= h.Unhealthy && !passed {
		t.healthy, t.differ = passed, 0
	}
}

// eligible returns the targets that get connections. If none is healthy, these are all
// targets: a Network Load Balancer fails open ("Health checks for Network Load Balancer
// target groups" in its user guide).
func eligible(targets []string, all map[string]*health) []string {
	healthy := slices.DeleteFunc(slices.Clone(targets), func(target string) bool {
		return all[target] == nil || !all[target].healthy
	})
	if len(healthy) == 0 {
		return targets
	}
	return healthy
}
