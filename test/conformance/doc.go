// Package conformance is one suite that asks an AWS account for everything a
// cluster asks it for, and notes what it answers. It runs on the simulated AWS,
// whose answers are what we know of AWS (testdata/answers.txt), and, with the
// build tag e2e, on moto_server; where moto answers otherwise, differences_test.go
// says why.
package conformance
