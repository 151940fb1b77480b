// Package aws holds nothing itself: below it is one package for each service of
// AWS, and here are the tests that compare kinds of several services.
package aws
