// Package conformance is one suite that sends an AWS account all queries that a run
// sends, and records the answers. With the simulated AWS, the answers are what is known
// about AWS (testdata/answers.txt). With the build tag e2e, it runs with moto_server;
// differences_test.go lists where moto differs, and why.
package conformance
