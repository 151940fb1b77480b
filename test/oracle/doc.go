// Package oracle holds what the packages of clusterawsadm make against what
// the projects they follow make of the same input. It is a module of its own,
// so that the reference implementations are never linked into the binary nor
// have a say in its dependencies.
package oracle
