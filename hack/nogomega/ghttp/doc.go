// Package ghttp is empty.
package ghttp
