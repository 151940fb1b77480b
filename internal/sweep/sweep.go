// Package sweep says how much of a sweep a test runs: a sample, all of it, or one of several parts.
package sweep

import (
	"fmt"
	"os"
)

// Part returns the part of a sweep to run, counted from 0, and the number of parts. The environment
// variable SWEEP names it: 2/3 is the second of three, and 1 is all. of is 0 if it is not set: then a test
// runs a sample.
func Part() (part, of int) { return parse(os.Getenv("SWEEP")) }

func parse(s string) (part, of int) {
	switch s {
	case "":
		return 0, 0
	case "1":
		return 0, 1
	}
	if _, err := fmt.Sscanf(s, "%d/%d", &part, &of); err != nil || part < 1 || part > of || s != fmt.Sprintf("%d/%d", part, of) {
		panic(fmt.Sprintf("SWEEP is %q: write 1 for all, or a part such as 2/3", s))
	}
	return part - 1, of
}
