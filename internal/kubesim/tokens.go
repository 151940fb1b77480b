package kubesim

import (
	"encoding/base64"
	"strings"
	"time"
)

const tokens = "/api/v1/namespaces/kube-system/secrets/bootstrap-token-" //nolint:gosec // a path

// TokenValid reports whether machines can join with a bootstrap token at a time.
func (c *Cluster) TokenValid(token string, at time.Time) bool {
	id, secret, _ := strings.Cut(token, ".")
	o := c.Objects[tokens+id]
	if decoded(o, "token-secret") != secret || secret == "" || decoded(o, "usage-bootstrap-authentication") != "true" {
		return false
	}
	return !expired(o, at)
}

// expired reports whether a token has expired. An invalid expiry counts as expired.
func expired(o Object, at time.Time) bool {
	expires := decoded(o, "expiration")
	if expires == "" {
		return false
	}
	t, err := time.Parse(time.RFC3339, expires)
	return err != nil || !at.Before(t)
}

// KeepTokens extends the validity of all valid tokens with a description (in base64) to
// ttl.
func (c *Cluster) KeepTokens(at time.Time, description string, ttl time.Duration) {
	for path, o := range c.Objects {
		data, _ := o["data"].(Object)
		if strings.HasPrefix(path, tokens) && text(o, "data", "description") == description && !expired(o, at) {
			data["expiration"] = base64.StdEncoding.EncodeToString([]byte(at.Add(ttl).UTC().Format(time.RFC3339)))
			c.put(path, o, at)
		}
	}
}

// cleanTokens removes expired tokens, as the token cleaner does.
func (c *Cluster) cleanTokens(now time.Time) {
	for path, o := range c.Objects {
		if strings.HasPrefix(path, tokens) && expired(o, now) {
			delete(c.Objects, path)
		}
	}
}

func decoded(o Object, key string) string {
	data, _ := base64.StdEncoding.DecodeString(text(o, "data", key)) // invalid base64 is an empty value
	return string(data)
}
