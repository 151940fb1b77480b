package boot

import (
	"bytes"
	"fmt"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// Secrets returns one key of a Secret of the manifest. It may be nil if the manifest has
// no Secrets.
type Secrets func(name, key string) ([]byte, error)

// files returns the files with the content of contentFrom.
func (s Secrets) files(files []bootstrapv1.File) ([]bootstrapv1.File, error) {
	resolved := make([]bootstrapv1.File, 0, len(files))
	for i, file := range files {
		if file.ContentFormat == bootstrapv1.FileContentFormatTemplate {
			return nil, fmt.Errorf(
				"files[%d].contentFormat: Template is not supported (file %s): write the plain text, or use jinja, which cloud-init evaluates",
				i,
				file.Path,
			)
		}
		if file.ContentFrom.IsDefined() {
			content, err := s.lookUp(file.ContentFrom.Secret.Name, file.ContentFrom.Secret.Key)
			if err != nil {
				return nil, fmt.Errorf("files[%d].contentFrom: %w", i, err)
			}
			file.Content, file.ContentFrom = string(content), bootstrapv1.FileSource{}
		}
		resolved = append(resolved, file)
	}
	return resolved, nil
}

// users returns the users with the password of passwdFrom.
func (s Secrets) users(users []bootstrapv1.User) ([]bootstrapv1.User, error) {
	resolved := make([]bootstrapv1.User, 0, len(users))
	for i, user := range users {
		if user.PasswdFrom.IsDefined() {
			password, err := s.lookUp(user.PasswdFrom.Secret.Name, user.PasswdFrom.Secret.Key)
			if err != nil {
				return nil, fmt.Errorf("users[%d].passwdFrom: %w", i, err)
			}
			user.Passwd, user.PasswdFrom = string(bytes.TrimRight(password, "\n")), bootstrapv1.PasswdSource{}
		}
		resolved = append(resolved, user)
	}
	return resolved, nil
}

func (s Secrets) lookUp(name, key string) ([]byte, error) {
	if s == nil {
		return nil, fmt.Errorf("secret %q is not in the manifest", name)
	}
	return s(name, key)
}

// FileContent returns the content of the file that machines with a configuration have at a path;
// nil if the configuration has none.
func FileContent(spec *bootstrapv1.KubeadmConfigSpec, s Secrets, path string) ([]byte, error) {
	files, err := s.files(spec.Files)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.Path == path {
			return []byte(f.Content), nil
		}
	}
	return nil, nil
}
