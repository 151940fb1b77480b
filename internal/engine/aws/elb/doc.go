// Package elb holds the kinds of resources of Elastic Load Balancing: Network,
// Application and Classic Load Balancers, their listeners, target groups and
// targets.
package elb
