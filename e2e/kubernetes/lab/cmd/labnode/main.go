// Command labnode replaces systemd, the container runtime and the kubelet on an instance
// of the lab. Like busybox, it runs the program with whose name it is called.
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
