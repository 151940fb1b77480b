package kubesim

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// emptiedIn is how long the content of a namespace remains after its deletion.
const emptiedIn = 30 * time.Second

// terminating rejects new objects in a namespace that is being deleted.
func (c *Cluster) terminating(at place) (int, any) {
	if !at.resource.Namespaced || Going(c.Objects["/api/v1/namespaces/"+at.namespace]).IsZero() {
		return 0, nil
	}
	what := fmt.Sprintf("%s %q is forbidden: unable to create new content in namespace %s because it is being terminated", at.resource.Name, at.name, at.namespace)
	code, answer := failure(http.StatusForbidden, "Forbidden", what)
	status, _ := answer.(Object)
	status["details"] = Object{"causes": []any{Object{
		"reason": "NamespaceTerminating", "message": fmt.Sprintf("namespace %s is being terminated", at.namespace), "field": "metadata.namespace",
	}}}
	return code, answer
}

// settleNamespaces deletes the content of namespaces that are being deleted, and then the
// namespaces.
func (c *Cluster) settleNamespaces(now time.Time) {
	for _, path := range c.paths("Namespace") {
		since := Going(c.Objects[path])
		if since.IsZero() || now.Sub(since) < emptiedIn {
			continue
		}
		empty := true
		for p, o := range c.Objects {
			at, _ := c.parse(p)
			if inside := at.resource.Namespaced && strings.HasSuffix(path, "/"+at.namespace); !inside {
				continue
			}
			empty = false
			if Going(o).IsZero() {
				c.remove(now, at)
			}
		}
		if empty {
			delete(c.Objects, path)
		}
	}
}
