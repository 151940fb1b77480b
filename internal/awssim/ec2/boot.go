package ec2

import (
	"time"
)

// Boot is what becomes of a machine that has booted.
type Boot struct {
	At           time.Time // when kubeadm began
	Failed       string    // why it did not come to anything; "" while it may
	Joined       time.Time // zero: not yet
	Node         string    // its name
	Host         string    // of the API server it joins, or begins
	Token        string
	Hashes       []string
	ControlPlane bool
	Version      string
	External     bool // a cloud controller manager tells the kubelet who it is
	Labels       map[string]string

	// A timer that makes bootstrap tokens with a description valid for longer.
	KeepsEvery, KeepsFor time.Duration
	KeepsThose           string    // in base64
	Kept                 time.Time // when it last did
}
