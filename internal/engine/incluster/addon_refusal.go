package incluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// refusedError says that the API server refuses a dry run of a change.
type refusedError struct {
	error

	seen string // the state of the object, as far as it is known without a dry run
}

// refused returns the error for a dry run that is refused. Only the fields that the API server names are known to differ. If a webhook has
// side effects, so that nothing is known, the object is compared with what the manifest has.
func refused(err error, live, want map[string]any) *refusedError {
	seen := "refused by the API server"
	if fields := fieldsOf(err); len(fields) > 0 {
		seen = differsIn(fields)
	} else if strings.Contains(statusOf(err).Message, noDryRun) {
		seen = differsIn(missingIn("", live, want))
	}
	return &refusedError{err, seen}
}

// noDryRun is what the API server says of a webhook with side effects (NewDryRunUnsupportedErr in k8s.io/apiserver).
const noDryRun = "does not support dry run"

// missingIn lists the paths at which an object has not what is wanted.
func missingIn(path string, have, want any) (paths []string) {
	h, _ := have.(map[string]any)
	if w, is := want.(map[string]any); is {
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if path != "" || key != "status" && key != "stringData" {
				paths = append(paths, missingIn(strings.TrimPrefix(path+"."+key, "."), h[key], w[key])...)
			}
		}
		return paths
	}
	hs, _ := have.([]any)
	if ws, is := want.([]any); is && len(hs) == len(ws) {
		for i := range ws {
			paths = append(paths, missingIn(fmt.Sprintf("%s[%d]", path, i), hs[i], ws[i])...)
		}
		return paths
	}
	if fmt.Sprint(have) == fmt.Sprint(want) {
		return nil
	}
	return []string{path}
}

// Unwrap returns the error of the API server.
func (e *refusedError) Unwrap() error { return e.error }

// fieldsOf returns the fields that the API server names in a refusal.
func fieldsOf(err error) (fields []string) {
	for _, cause := range causesOf(err) {
		if cause.Field != "" && !slices.Contains(fields, cause.Field) {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

func causesOf(err error) []metav1.StatusCause {
	if s := statusOf(err); s.Details != nil {
		return s.Details.Causes
	}
	return nil
}

func statusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status()
	}
	return metav1.Status{}
}

// dryRuns is how many dry runs a plan sends at once.
const dryRuns = 8

// CheckParts implements graph.CheckedParts: it sends a dry run of each write. Of objects that exist, Find has sent it.
func (a *Addons) CheckParts(ctx context.Context, c *cloud.Clients, state graph.State) ([]graph.Objection, error) {
	if !answers(a.Server) {
		return nil, nil // the API server does not answer yet
	}
	k, err := a.API.Client(c)
	if err != nil {
		return nil, err
	}
	have, _ := state.(*AddonsState)
	if have == nil {
		have = &AddonsState{Seen: make([]string, len(a.Objects))}
	}
	all := make([]*graph.Objection, len(a.Objects))
	var silent atomic.Bool // the API server has given no answer: it is asked no more
	var asked errgroup.Group
	asked.SetLimit(dryRuns)
	for i, o := range a.Objects {
		seen, refusal := have.Seen[i], have.refusals[i]
		if seen == a.wanted() || seen == notAccepted || seen != "" && refusal == nil {
			continue
		}
		asked.Go(func() error {
			err := refusal
			if err == nil && !silent.Load() {
				_, err = k.Apply(ctx, o.object(), true)
			}
			if _, unanswered := kube.Unavailable(err); unanswered {
				silent.Store(true)
			}
			all[i] = a.objection(ctx, k, o, seen != "", err)
			return nil
		})
	}
	_ = asked.Wait() // no function returns an error
	var out []graph.Objection
	for _, o := range all {
		if o != nil {
			out = append(out, *o)
		}
	}
	return out, ctx.Err()
}

// objection returns what to say of the answer to a dry run; nil for nothing. What other objects of the run may change is no objection.
func (a *Addons) objection(ctx context.Context, k *kube.Client, o AddonObject, exists bool, err error) *graph.Objection {
	switch {
	case err == nil, ctx.Err() != nil, !kube.Rejected(err), a.temporary(o, err), errors.As(err, new(*kube.UnknownKindError)), apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err) && o.kind() == "Pod": // for the lack of its service account, priority or runtime, which the run may create
		return nil
	case a.redefines(ctx, k, o):
		return nil
	}
	said := &AddonError{o, err, ""}
	said.Object.Origin = "" // the objection has it
	if certain(err) {
		said.Fix = o.advice(err, exists)
		return &graph.Objection{Origin: o.Origin, Err: said}
	}
	return &graph.Objection{Origin: o.Origin, Doubt: true, Err: fmt.Errorf("it is not known whether the API server accepts this: %w", said)}
}

// certain reports whether an API server will not accept an object, whatever else the run does: policies, webhooks and quotas may be changed
// by it, and an address or a port that is in use may become free.
func certain(err error) bool {
	s := statusOf(err)
	if regex.Of("denied (the )?request|" + noDryRun + "|already allocated|not in the valid range").MatchString(s.Message) {
		return false
	}
	return kube.Unfit(err) || slices.Contains([]int32{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, s.Code)
}

// redefines reports whether the run may change the definition of the kind of an object, by which the API server judges it.
func (a *Addons) redefines(ctx context.Context, k *kube.Client, o AddonObject) bool {
	if o.Builtin() {
		return false
	}
	definition, ours := a.Definitions[o.Definition()]
	if !ours {
		return a.Charts
	}
	seen, err := (&Addons{Reconcile: true, Brought: a.Brought}).compare(ctx, k, definition)
	return err != nil || seen != asInManifest
}

// said is what the API server says of an object, without values of Secrets, and without values that are long.
func (o AddonObject) said(err error) string {
	s := statusOf(err)
	causes := causesOf(err)
	if o.kind() == "Secret" && s.Code != 0 {
		why := fmt.Sprintf("the API server says %d %s", s.Code, s.Reason) // the message may contain secrets
		if fields := fieldsOf(err); len(fields) > 0 {
			why += ": " + strings.Join(fields, ", ")
		}
		return why
	}
	said := regex.Of(`^\S+ "[^"]*" is invalid: `).ReplaceAllString(err.Error(), "") // the title of the object comes before it
	const most = 400
	if len(said) <= most && !strings.Contains(said, "\n") || len(causes) == 0 {
		return strings.TrimSuffix(said, ".")
	}
	var all []string
	for _, cause := range causes {
		all = append(all, strings.TrimPrefix(cause.Field+": "+shortened(cause.Message), ": "))
	}
	return strings.Join(all, ", ")
}

// shortened leaves out the value in what the API server says of a field, and what comes after the first line, which is a comparison of values.
func shortened(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	const most = 200
	if at := strings.LastIndex(message, ": "); strings.HasPrefix(message, "Invalid value: ") && len(message) > most && at > 0 {
		return message[at+2:]
	}
	return message
}

// cannotChange matches what the API server says of fields of existing objects (pkg/apis/*/validation of Kubernetes v1.34.2, and rules with
// oldSelf in CustomResourceDefinitions).
const cannotChange = `immutable|may not (be changed|change)|cannot change|[Uu]pdates to .* forbidden|can not be (less|unset)|was previously a storage version|update .* is forbidden`

// advice says what to do about an object that the API server refuses.
func (o AddonObject) advice(err error, exists bool) string {
	switch {
	case errors.As(err, new(*kube.UnknownKindError)):
		return "; bring its CustomResourceDefinition too"
	case apierrors.IsInvalid(err) && exists && regex.Of(cannotChange).MatchString(err.Error()):
		return fmt.Sprintf(
			"; the API server does not permit this change of an existing object: set the old value back, or delete the object (%s) and run again, which creates it again%s",
			o.deletion(),
			o.lost(),
		)
	case apierrors.IsInvalid(err), kube.Unfit(err):
		return "; mend it"
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return "; wait until the namespace is gone, and bring its Namespace too"
	case apierrors.IsNotFound(err):
		return "; bring its Namespace too"
	}
	return ""
}

// deletion is the command that deletes an object.
func (o AddonObject) deletion() string {
	object := o.object()
	kind := strings.ToLower(o.kind())
	if gvk := object.GroupVersionKind(); !o.Builtin() {
		kind = strings.Join([]string{gvk.Kind, gvk.Version, gvk.Group}, ".")
	}
	command := "kubectl delete " + kind + " " + object.GetName()
	if ns := object.GetNamespace(); ns != "" {
		command += " -n " + ns
	}
	return command
}

// lost says what is lost with an object that is deleted and created again.
func (o AddonObject) lost() string {
	switch o.kind() {
	case "PersistentVolumeClaim":
		return "; the deletion of a claim deletes its volume with all data, unless the reclaim policy of the volume is Retain"
	case "PersistentVolume":
		return "; the claim that is bound to it loses it, and a volume with the reclaim policy Delete loses its data"
	case "StatefulSet":
		return "; its pods stop meanwhile, except with --cascade=orphan; its claims and their data stay, except with persistentVolumeClaimRetentionPolicy"
	case "Deployment", "DaemonSet", "ReplicaSet", "Pod":
		return "; its pods stop meanwhile"
	case "Job":
		return "; its pods are deleted, and it runs again"
	case "Service":
		return "; it gets another address, and another load balancer if it has one"
	case "StorageClass":
		return "; volumes that exist stay as they are"
	case "CustomResourceDefinition":
		return "; the deletion of a definition deletes all objects of its kind"
	case "Namespace":
		return "; the deletion of a namespace deletes everything in it"
	}
	return ""
}
