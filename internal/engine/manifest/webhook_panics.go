package manifest

import "fmt"

// recoverPanics turns a panic of upstream's code into an error: some of its checks panic
// for input that the schema permits.
func recoverPanics(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("upstream's validation failed: %v", r)
		}
	}()
	return f()
}
