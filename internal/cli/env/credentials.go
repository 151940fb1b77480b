package env

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/config"
)

// CredentialSource describes from where the credentials of a command come.
type CredentialSource struct {
	Name  string // "profile dev", "the environment (AWS_ACCESS_KEY_ID)"
	SSO   bool   // from IAM Identity Center
	Login string // the command that renews them, with SSO
}

// CredentialSource finds out where credentials come from, in the order of the SDK: a profile
// of the command line, environment variables, the profile of the environment. It makes no
// call.
func (e *Env) CredentialSource(ctx context.Context, profile string) CredentialSource {
	if profile == "" && e.Getenv("AWS_ACCESS_KEY_ID") != "" {
		return CredentialSource{Name: "the environment (AWS_ACCESS_KEY_ID)"}
	}
	name := cmp.Or(profile, e.Getenv("AWS_PROFILE"), config.DefaultSharedConfigProfile)
	s := CredentialSource{Name: "profile " + name}
	file := func(variable, name string) []string {
		return []string{cmp.Or(e.Getenv(variable), filepath.Join(e.HomeDir, ".aws", name))}
	}
	found, err := config.LoadSharedConfigProfile(ctx, name, func(o *config.LoadSharedConfigOptions) {
		o.ConfigFiles, o.CredentialsFiles = file("AWS_CONFIG_FILE", "config"), file("AWS_SHARED_CREDENTIALS_FILE", "credentials")
	})
	switch {
	case err != nil && profile == "" && e.Getenv("AWS_PROFILE") == "":
		s.Name = "this machine's role" // of EC2, ECS, or a web identity
	case err == nil && (found.SSOSessionName != "" || found.SSOStartURL != ""):
		s.SSO, s.Login = true, "aws sso login --profile "+Shell([]string{name})
	}
	return s
}
