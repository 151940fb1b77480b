// Command clusterawsadm creates, shows and deletes Kubernetes clusters on AWS
// from Cluster API manifests.
package main

import (
	"os"
	"runtime/debug"

	"github.com/clusterawsadm/clusterawsadm/internal/cli"
)

func main() {
	debug.SetGCPercent(35) // runs wait most of the time: a fifth less memory for a little more processor time
	os.Exit(cli.Main(os.Args[1:], cli.Process()))
}
