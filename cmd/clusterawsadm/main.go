// Command clusterawsadm creates, shows and deletes Kubernetes clusters on AWS
// from Cluster API manifests.
package main

import (
	"os"
	"runtime/debug"

	"github.com/clusterawsadm/clusterawsadm/internal/cli"
)

func main() {
	debug.SetGCPercent(50) // runs wait most of the time: about a tenth less memory for a little more processor time
	os.Exit(cli.Main(os.Args[1:], cli.Process()))
}
