package kubesim

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// agentOf returns the field manager of requests that name none: the first part of the user agent.
func agentOf(r *http.Request) string {
	agent, _, _ := strings.Cut(r.UserAgent(), "/")
	return agent
}

// managedLabels is an entry of managedFields of a Node: a manager and the labels that it has set.
// Other fields are not simulated.
func managedLabels(manager string, keys []string, now time.Time) Object {
	fields := Object{".": Object{}}
	for _, k := range keys {
		fields["f:"+k] = Object{}
	}
	return Object{
		"manager": manager, "operation": "Update", "apiVersion": "v1", "time": now.UTC().Format(time.RFC3339),
		"fieldsType": "FieldsV1", "fieldsV1": Object{"f:metadata": Object{"f:labels": fields}},
	}
}

// Label sets a label of a Node as a client with this name does, such as "kubectl-label".
func Label(now time.Time, node Object, manager, key, label string) {
	changed, _ := merged(node, Object{"metadata": Object{"labels": Object{key: label}}}).(Object)
	node["metadata"] = manageLabels(node, changed, manager, now)["metadata"]
}

// manageLabels updates managedFields of a Node. A label belongs to the manager that last changed
// its value.
func manageLabels(have, after Object, manager string, now time.Time) Object {
	was, _ := value(have, "metadata", "labels").(Object)
	is, _ := value(after, "metadata", "labels").(Object)
	var changed []string
	for _, k := range slices.Sorted(maps.Keys(is)) {
		if was[k] != is[k] {
			changed = append(changed, k)
		}
	}
	entries, _ := value(after, "metadata", "managedFields").([]any)
	owners := map[string][]string{manager: changed}
	for _, x := range entries {
		entry, _ := x.(Object)
		fields, _ := value(entry, "fieldsV1", "f:metadata", "f:labels").(Object)
		for field := range fields {
			key, isLabel := strings.CutPrefix(field, "f:")
			if _, kept := is[key]; isLabel && kept && !slices.Contains(changed, key) {
				owners[text(entry, "manager")] = append(owners[text(entry, "manager")], key)
			}
		}
	}
	var list []any
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		if len(owners[name]) > 0 {
			list = append(list, managedLabels(name, owners[name], now))
		}
	}
	meta, _ := after["metadata"].(Object)
	meta = maps.Clone(meta)
	meta["managedFields"] = list
	after["metadata"] = meta
	return after
}
