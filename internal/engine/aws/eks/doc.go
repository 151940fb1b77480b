// Package eks contains the kinds of Amazon EKS resources: clusters, node groups, Fargate
// profiles, add-ons, access entries and identity providers, and the OIDC provider in IAM
// for service accounts.
package eks
