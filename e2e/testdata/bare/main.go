// A program that links what clusterawsadm links, and does nothing: how fast
// clusterawsadm can start at best.
package main

import _ "github.com/clusterawsadm/clusterawsadm/internal/cli"

func main() {}
