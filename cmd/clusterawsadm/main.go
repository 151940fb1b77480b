// Command clusterawsadm creates, shows and deletes Kubernetes clusters on AWS
// from Cluster API manifests.
package main

import (
	"os"

	"github.com/clusterawsadm/clusterawsadm/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], cli.Process()))
}
