// Package hooks sets the defaults and applies the rules of Cluster API's admission webhooks to one typed object, and
// those of the kinds of CAPA whose webhooks need an API server.
package hooks

import "fmt"

// RecoverPanics turns a panic of upstream's code into an error: some of its checks panic
// for input that the schema permits.
func RecoverPanics(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("upstream's validation failed: %v", r)
		}
	}()
	return f()
}
