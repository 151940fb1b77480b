// Command labnode is everything that an instance of the lab has instead of
// systemd, a container runtime and a kubelet. It goes by the name it is called
// with, as busybox does.
package main

import (
	"fmt"
	"os"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/lab/node"
)

func main() {
	code, err := node.Main(os.Args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "labnode:", err)
	}
	os.Exit(code)
}
