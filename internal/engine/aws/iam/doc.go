// Package iam contains the kind of IAM roles.
package iam
