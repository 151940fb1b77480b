// Package iam holds the IAM roles that are created together with a cluster.
package iam
