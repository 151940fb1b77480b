package cluster

import (
	"errors"
	"time"
)

// MostExecution is the longest time limit of a command on a machine.
const MostExecution = 48 * time.Hour

// Execution is the result of a command on a machine.
type Execution struct {
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	ExitCode  int    `json:"exitCode"`
	Truncated bool   `json:"truncated,omitempty"` // AWS has cut the output
}

// Session is a session of Session Manager with a machine, as session-manager-plugin needs it. Token is a secret.
type Session struct {
	Machine, Region, Endpoint string // Endpoint is the URL of the API of Systems Manager
	ID, Token, URL            string
}

// ErrNotConnected means that the SSM agent of a machine is not connected to Systems Manager.
var ErrNotConnected = errors.New("the machine is not connected to Systems Manager: give its role the permissions of AmazonSSMManagedInstanceCore, " +
	"its subnet a route to Systems Manager, and its image the SSM agent")

// Reach is what a connection with SSH to a machine needs.
type Reach struct {
	Machine string `json:"machine"` // ID of its instance
	Address string `json:"address"` // private
	Key     string `json:"key,omitempty"`
	Bastion string `json:"bastion,omitempty"` // public address; "" without a bastion that runs
}
