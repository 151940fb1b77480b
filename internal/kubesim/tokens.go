package kubesim

import (
	"encoding/base64"
	"strings"
	"time"
)

const tokens = "/api/v1/namespaces/kube-system/secrets/bootstrap-token-" //nolint:gosec // a path

// TokenValid reports whether a bootstrap token lets machines join at a time.
func (c *Cluster) TokenValid(token string, at time.Time) bool {
	id, secret, _ := strings.Cut(token, ".")
	o := c.Objects[tokens+id]
	if decoded(o, "token-secret") != secret || secret == "" || decoded(o, "usage-bootstrap-authentication") != "true" {
		return false
	}
	return !expired(o, at)
}

// expired reports whether a token has expired. What cannot be read has.
func expired(o Object, at time.Time) bool {
	expires := decoded(o, "expiration")
	if expires == "" {
		return false
	}
	t, err := time.Parse(time.RFC3339, expires)
	return err != nil || !at.Before(t)
}

// KeepTokens makes the tokens with a description, in base64, that have not
// expired valid for some time from then on.
func (c *Cluster) KeepTokens(at time.Time, description string, ttl time.Duration) {
	for path, o := range c.Objects {
		data, _ := o["data"].(Object)
		if strings.HasPrefix(path, tokens) && text(o, "data", "description") == description && !expired(o, at) {
			data["expiration"] = base64.StdEncoding.EncodeToString([]byte(at.Add(ttl).UTC().Format(time.RFC3339)))
			c.put(path, o, at)
		}
	}
}

// cleanTokens removes tokens that have expired, as the token cleaner does.
func (c *Cluster) cleanTokens(now time.Time) {
	for path, o := range c.Objects {
		if strings.HasPrefix(path, tokens) && expired(o, now) {
			delete(c.Objects, path)
		}
	}
}

func decoded(o Object, key string) string {
	data, _ := base64.StdEncoding.DecodeString(text(o, "data", key)) // what is no base64 is nothing
	return string(data)
}
