// Package autoscaling contains the kinds of Auto Scaling groups and lifecycle hooks.
package autoscaling
