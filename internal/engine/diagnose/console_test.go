package diagnose

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWaitsForNetwork(t *testing.T) {
	const (
		waiting = "[t] user data: waiting for a connection to x:443, for up to 900 seconds"
		without = "[t] user data: no connection to x:443 after 900 seconds: going on without"
		try     = "[t] user data: chunk 0: try 1 of 10 to fetch it failed"
		again   = "[t] user data: this machine boots again when it has a connection to x:443"
		end     = "[t] user data: chunk 0 of x cannot be fetched"
		written = "[t] user data: written, cloud-init starts again"
	)
	for _, tt := range []struct {
		want string
		text []string
	}{
		{waiting, []string{waiting}},
		{again, []string{waiting, without, try, again, end}},
		{"", []string{waiting, without, try, again, end, waiting, written, "kubeadm join: attempt 1 failed with exit code 1"}},
		{"", []string{waiting, "cloud-init[1203]: [init] Using Kubernetes version: v1.34.2"}},
		{"", []string{again, "cloud-init[1203]: [preflight] Running pre-flight checks"}},
	} {
		assert.Equal(t, tt.want, waitsForNetwork(tt.text), strings.Join(tt.text, "\n"))
	}
}
