// Package oracle compares the results of clusterawsadm with those of the upstream
// projects for the same input. It is a separate module, so that the reference
// implementations are not linked into the program and do not affect its dependencies.
package oracle
