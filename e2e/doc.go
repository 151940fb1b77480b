// Package e2e tests the built binary with moto_server over HTTP (build tag e2e, "make
// e2e"), and, in every test run, the README and the layers of packages.
package e2e
