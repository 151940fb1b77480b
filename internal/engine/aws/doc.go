// Package aws lists the kinds of AWS resources. Each AWS service has a package below it.
package aws
