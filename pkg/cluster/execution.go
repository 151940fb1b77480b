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

// Session is a session of Session Manager with a machine, for session-manager-plugin. It has a secret.
type Session struct {
	Machine, Region, Endpoint string // Endpoint is the URL of the API of Systems Manager
	ID, Token, URL            string
}

// ErrNotConnected says that Systems Manager does not reach a machine.
var ErrNotConnected = errors.New("the machine is not connected to Systems Manager: give its role the permissions of AmazonSSMManagedInstanceCore, " +
	"its subnet a route to Systems Manager, and its image the SSM agent")

// Reach is how a shell on a machine is reached.
type Reach struct {
	Machine string `json:"machine"` // ID of its instance
	Address string `json:"address"` // private
	Key     string `json:"key,omitempty"`
	Bastion string `json:"bastion,omitempty"` // public address; "" without a bastion that runs
}
