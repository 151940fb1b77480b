// Package eks holds the kinds of resources of Amazon EKS: the cluster, its node
// groups, Fargate profiles, add-ons, access entries and identity providers, and the
// OIDC provider in IAM that stands for its service accounts.
package eks
