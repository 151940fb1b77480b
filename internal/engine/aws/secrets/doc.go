// Package secrets holds what the account stores for a cluster in Systems Manager
// Parameter Store and Secrets Manager: its certificate authorities and keys, which
// machine has initialised it, and the bootstrap data of its machines.
package secrets
