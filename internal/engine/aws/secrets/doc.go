// Package secrets contains the kinds of parameters in SSM Parameter Store and secrets in
// Secrets Manager: certificate authorities and keys, the init marker, and bootstrap data.
package secrets
