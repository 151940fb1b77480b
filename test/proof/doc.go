// Package proof tests that a plan is a proof: what a plan accepts does not fail for a reason
// that could have been known. Its tests derive wrong values for every field of every example,
// by class, and create what a plan accepts in the simulated AWS.
package proof
