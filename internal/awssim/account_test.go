package awssim

import "github.com/aws/aws-sdk-go-v2/aws"

// of returns a service of an account.
func of[S inventory](a *AWS) S {
	for _, s := range a.services {
		if s, ok := s.(S); ok {
			return s
		}
	}
	panic("no such service")
}

// patient returns a configuration for tests that call faster than AWS's rates: with the SDK's three attempts and its
// random pauses, chance would decide them.
func patient(a *AWS) aws.Config {
	cfg := a.Config()
	cfg.RetryMaxAttempts = 20
	return cfg
}
