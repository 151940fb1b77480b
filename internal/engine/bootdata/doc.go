// Package bootdata brings boot data to machines: it fills in the endpoint, keys and
// token that are known only at run time, and stores the result in Secrets Manager,
// Parameter Store, S3 or the user data itself.
package bootdata
