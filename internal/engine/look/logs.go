package look

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Logs collects the state of the cluster, the console output of its machines, their kubelet and
// cloud-init logs if Systems Manager reaches them, and, if the API server answers, the pods and
// events. Secrets are removed. What the caller may not read is in Missing.
func Logs(ctx context.Context, c *run.Cluster) (l cluster.Logs, err error) {
	v := newView(c)
	if l.Status, err = v.status(ctx); err != nil {
		return l, err
	}
	names := map[string]string{}
	for _, s := range l.Status.Resources {
		if m := v.machineOf(s); m != nil {
			names[m.ID] = strings.ReplaceAll(string(s.Resource), "/", "-") + "-" + m.ID
			text, err := diagnose.Console(ctx, v.Cloud, *m)
			add(&l, path.Join("console", names[m.ID]+".txt"), text, err)
		}
	}
	readMachineLogs(ctx, &l, v.Cloud, names)
	if l.Status.API == nil || l.Status.API.State != cluster.APIReady {
		l.Missing = append(l.Missing, "pods and events: the API server was not asked, or does not answer")
		return l, context.Cause(ctx)
	}
	k, err := v.APIServer(cloud.InSnapshot(cloud.ReadOnly(ctx)))
	if k == nil || err != nil {
		add(&l, "kubernetes/pods.txt", "", err)
		return l, context.Cause(ctx)
	}
	limited, cancel := v.Cloud.Clock.WithTimeout(ctx, diagnosing, nil)
	defer cancel()
	text, err := pods(limited, k)
	add(&l, "kubernetes/pods.txt", text, err)
	text, err = events(limited, k)
	add(&l, "kubernetes/events.txt", text, err)
	return l, context.Cause(ctx)
}

// add adds a file without its secrets, or says why it is missing.
func add(l *cluster.Logs, name, text string, err error) {
	switch {
	case err != nil:
		l.Missing = append(l.Missing, name+": "+diagnose.Redacted(err.Error()))
	case text == "":
		l.Missing = append(l.Missing, name+": it is empty")
	default:
		l.Files = append(l.Files, cluster.LogFile{Name: name, Text: diagnose.Redacted(text) + "\n"})
	}
}

// pods lists the pods with the states of their containers. The list does not contain their
// environment, which may have secrets.
func pods(ctx context.Context, k *kube.Client) (string, error) {
	var list corev1.PodList
	if err := k.Get(ctx, "/api/v1/pods?limit=2000", &list); err != nil {
		return "", err
	}
	var b strings.Builder
	for i := range list.Items {
		p := &list.Items[i]
		fmt.Fprintf(&b, "%s/%s  %s  %s\n", p.Namespace, p.Name, p.Status.Phase, p.Spec.NodeName)
		for _, s := range p.Status.ContainerStatuses {
			fmt.Fprintf(&b, "    %s  ready %t  restarts %d%s\n", s.Name, s.Ready, s.RestartCount, waits(s.State))
		}
	}
	return b.String(), nil
}

func waits(s corev1.ContainerState) string {
	switch {
	case s.Waiting != nil:
		return "  " + s.Waiting.Reason + " " + s.Waiting.Message
	case s.Terminated != nil:
		return fmt.Sprintf("  %s, exit code %d %s", s.Terminated.Reason, s.Terminated.ExitCode, s.Terminated.Message)
	}
	return ""
}

// events lists the events of the cluster.
func events(ctx context.Context, k *kube.Client) (string, error) {
	var list corev1.EventList
	if err := k.Get(ctx, "/api/v1/events?limit=2000", &list); err != nil {
		return "", err
	}
	var b strings.Builder
	for i := range list.Items {
		e := &list.Items[i]
		fmt.Fprintf(
			&b,
			"%s  %s  %s %s/%s  %s: %s\n",
			e.LastTimestamp.UTC().Format(time.RFC3339),
			e.Type,
			e.InvolvedObject.Kind,
			e.InvolvedObject.Namespace,
			e.InvolvedObject.Name,
			e.Reason,
			e.Message,
		)
	}
	return b.String(), nil
}
