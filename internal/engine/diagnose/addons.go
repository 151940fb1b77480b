package diagnose

import (
	"context"
	"fmt"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// webhookCall matches what an API server says of a webhook that does not answer: its name, and the name and the namespace
// of its Service (staging/src/k8s.io/apiserver/pkg/util/webhook of Kubernetes v1.34.2).
const webhookCall = `failed calling webhook "([^"]+)".*https://([a-z0-9-]+)\.([a-z0-9-]+)\.svc`

// Addons returns the diagnosis of objects that the API server does not accept in time: the Service of a webhook that does
// not answer, and why its pods do not run.
func Addons(a *incluster.Addons) graph.Diagnosis {
	return func(ctx context.Context, c *cloud.Clients) (findings []string, look string) {
		k, err := a.API.Client(c)
		if err != nil || k == nil {
			return nil, ""
		}
		blocked := a.Blocked(ctx, k)
		if blocked == nil {
			return nil, ""
		}
		m := regex.Of(webhookCall).FindStringSubmatch(blocked.Error())
		if m == nil {
			return nil, ""
		}
		finding := fmt.Sprintf("the webhook %s does not answer: its Service is %s/%s", m[1], m[3], m[2])
		if lines, err := incluster.Troubles(ctx, k, m[3], true); err == nil && len(lines) > 0 {
			finding += ": " + strings.Join(lines, "; ")
		}
		return []string{finding}, fmt.Sprintf("kubectl get pods,endpointslices -n %s", m[3])
	}
}

// Workloads says why pods of an add-on do not run, after the time limit.
func Workloads(w *incluster.Workloads) graph.Diagnosis {
	return func(ctx context.Context, c *cloud.Clients) (findings []string, look string) {
		k, err := w.API.Client(c)
		if err != nil || k == nil {
			return nil, ""
		}
		return Pods(ctx, k, w.Namespaces()), "kubectl get pods -A"
	}
}

// Pods returns the reasons why pods in some namespaces do not run.
func Pods(ctx context.Context, k *kube.Client, namespaces []string) (findings []string) {
	for _, namespace := range namespaces {
		if lines, err := incluster.Troubles(ctx, k, namespace, true); err == nil {
			findings = append(findings, lines...)
		}
	}
	return findings
}
