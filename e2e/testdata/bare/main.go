// A program that links the same libraries as clusterawsadm, and does nothing: the minimum
// start time of clusterawsadm.
package main

import _ "github.com/clusterawsadm/clusterawsadm/internal/cli"

func main() {}
