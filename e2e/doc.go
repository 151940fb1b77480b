// Package e2e tests the program from outside: the built binary against
// moto_server over HTTP (build tag e2e, "make e2e"), and, in every test run,
// that the README and the layers are true.
package e2e
