package kubesim

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// patch is a request to change an object.
type patch struct {
	kind, manager string
	agent         string // manager of a request that names none
	body          []byte
	dry           bool
}

const applyPatch = "application/apply-patch+yaml"

func (c *Cluster) patch(now time.Time, at place, p patch) (int, any) {
	change := Object{}
	if err := yaml.Unmarshal(p.body, &change); err != nil {
		return failure(http.StatusBadRequest, "BadRequest", err.Error())
	}
	have := c.Objects[at.full()]
	if at.sub != "" && at.sub != "status" {
		return failure(http.StatusMethodNotAllowed, "MethodNotAllowed", "not simulated: PATCH of "+at.sub)
	}
	switch {
	case strings.HasPrefix(p.kind, applyPatch):
		return c.apply(now, at, p, change)
	case have == nil:
		return missing(at)
	case strings.HasPrefix(p.kind, "application/merge-patch+json"):
	case strings.HasPrefix(p.kind, "application/strategic-merge-patch+json") && !hasLists(change):
	default:
		return failure(http.StatusUnsupportedMediaType, "UnsupportedMediaType", "not simulated: "+p.kind)
	}
	after, _ := merged(have, change).(Object)
	if code, answer := labelled(after); code != 0 {
		return code, answer
	}
	stringData(after)
	if at.resource.Name == "nodes" {
		after = manageLabels(have, after, cmp.Or(p.manager, p.agent), now)
	}
	c.defaults(after, have)
	if code, answer := update(at, have, after); code != 0 {
		return code, answer
	}
	if !p.dry {
		c.store(at.full(), after, now)
	}
	return http.StatusOK, after
}

// apply is a server-side apply: fields that the manager applied before and omits now are
// removed.
func (c *Cluster) apply(now time.Time, at place, p patch, want Object) (int, any) {
	if p.manager == "" {
		return failure(http.StatusBadRequest, "BadRequest", "PatchOptions.meta.k8s.io is invalid: fieldManager: Required value: is required for apply patch")
	}
	if why := undeclared(want); why != "" {
		return failure(http.StatusInternalServerError, "", why)
	}
	if code, answer := c.admit(at, want); code != 0 {
		return code, answer
	}
	have, code := c.Objects[at.full()], http.StatusOK
	if uid := text(want, "metadata", "uid"); uid != "" && uid != text(have, "metadata", "uid") {
		return failure(http.StatusConflict, "Conflict", fmt.Sprintf("uid mismatch: the provided object specified uid %s", uid))
	}
	if have == nil {
		if code, answer := c.terminating(at); code != 0 {
			return code, answer
		}
		have, code = Object{}, http.StatusCreated
	}
	after, _ := copied(have).(Object)
	if last, ok := c.Applied[at.full()][p.manager].(Object); ok {
		drop(after, last, want)
	}
	after, _ = joined("", after, want).(Object)
	if code, answer := accept(after); code != 0 { // the whole object: an apply may have some of its fields only
		return code, answer
	}
	if code, answer := c.allocated(at, after); code != 0 {
		return code, answer
	}
	stringData(after)
	c.defaults(after, have)
	if code, answer := update(at, c.Objects[at.full()], after); code != 0 {
		return code, answer
	}
	changed := !reflect.DeepEqual(after, have)
	managed(after, want, p.manager, now)
	if p.dry {
		return code, after
	}
	if changed {
		c.store(at.full(), after, now)
	}
	if c.Applied[at.full()] == nil {
		c.Applied[at.full()] = map[string]any{}
	}
	c.Applied[at.full()][p.manager] = copied(want)
	return code, after
}

// merged applies a JSON merge patch (RFC 7396): lists are replaced.
func merged(have, change any) any {
	c, ok := change.(Object)
	if !ok {
		return copied(change)
	}
	h, _ := have.(Object)
	out := Object{}
	maps.Copy(out, h)
	for k, v := range c {
		if v == nil {
			delete(out, k)
			continue
		}
		out[k] = merged(out[k], v)
	}
	return out
}

// joined returns a value after an apply. Lists whose items have keys keep items of
// others; other lists are replaced.
func joined(list string, have, want any) any {
	switch w := want.(type) {
	case Object:
		h, _ := have.(Object)
		out := Object{}
		maps.Copy(out, h)
		for k, v := range w {
			if out[k] = joined(k, out[k], v); v == nil {
				delete(out, k)
			}
		}
		return out
	case []any:
		h, _ := have.([]any)
		if !known(list, w) || !known(list, h) {
			return copied(want)
		}
		out := slices.Clone(h)
		for _, item := range w {
			if i := indexOf(list, out, item); i >= 0 {
				out[i] = joined("", out[i], item)
			} else {
				out = append(out, copied(item))
			}
		}
		return out
	}
	return want
}

// itemID returns the key of a list item, or "" if the list is replaced as a whole.
func itemID(list string, item any) string {
	o, _ := item.(Object)
	switch list {
	case "containers", "initContainers", "volumes", "env":
		return text(o, "name")
	case "volumeMounts":
		return text(o, "mountPath")
	case "ports":
		protocol := text(o, "protocol")
		if protocol == "" {
			protocol = "TCP"
		}
		return fmt.Sprint(o["containerPort"], o["port"], protocol)
	}
	return ""
}

func known(list string, items []any) bool {
	return !slices.ContainsFunc(items, func(item any) bool { return itemID(list, item) == "" })
}

func indexOf(list string, items []any, item any) int {
	return slices.IndexFunc(items, func(x any) bool { return itemID(list, x) == itemID(list, item) })
}

// without removes list items that were applied before and are omitted now.
func without(list string, have, last, want []any) []any {
	if !known(list, have) || !known(list, last) || !known(list, want) {
		return have
	}
	return slices.DeleteFunc(have, func(item any) bool {
		i := indexOf(list, last, item)
		if i < 0 {
			return false
		}
		at := indexOf(list, want, item)
		if at >= 0 {
			h, _ := item.(Object)
			l, _ := last[i].(Object)
			w, _ := want[at].(Object)
			drop(h, l, w)
		}
		return at < 0
	})
}

// drop removes fields that were applied before and are omitted now.
func drop(have, last, want Object) {
	for k, v := range last {
		if l, isList := v.([]any); isList && want[k] != nil {
			h, _ := have[k].([]any)
			w, _ := want[k].([]any)
			if h != nil {
				have[k] = without(k, h, l, w)
			}
			continue
		}
		inner, isObject := v.(Object)
		switch w, wanted := want[k]; {
		case !wanted && !isObject:
			delete(have, k)
		case isObject:
			h, _ := have[k].(Object)
			x, _ := w.(Object)
			if h != nil {
				drop(h, inner, x)
			}
		}
	}
}

func copied(v any) any {
	switch v := v.(type) {
	case Object:
		out := make(Object, len(v))
		for k, x := range v {
			out[k] = copied(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = copied(x)
		}
		return out
	}
	return v
}

func hasLists(o any) bool {
	switch v := o.(type) {
	case []any:
		return true
	case Object:
		for _, x := range v {
			if hasLists(x) {
				return true
			}
		}
	}
	return false
}

// stringData merges stringData of a Secret into data, as the API server does.
func stringData(o Object) {
	plain, _ := o["stringData"].(Object)
	if text(o, "kind") != "Secret" || plain == nil {
		return
	}
	data, _ := o["data"].(Object)
	if data == nil {
		data = Object{}
	}
	for k, v := range plain {
		s, _ := v.(string)
		data[k] = base64.StdEncoding.EncodeToString([]byte(s))
	}
	o["data"] = data
	delete(o, "stringData")
}
