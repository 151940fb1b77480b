// Package autoscaling holds the Auto Scaling groups of AWSMachinePools.
package autoscaling
