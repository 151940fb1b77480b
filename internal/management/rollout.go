package management

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ControllerDeployment is the Deployment of CAPA's controller.
const ControllerDeployment = "capa-controller-manager"

// restartedAt is the annotation with which kubectl rollout restart restarts pods.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// pollEvery is the time between two checks of a rollout.
const pollEvery = time.Second

func deployments() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}

// Rollout restarts the pods of CAPA's controller by the strategy of its Deployment. It
// does not wait for them.
func (c *Cluster) Rollout(ctx context.Context, namespace string) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{restartedAt: c.clock.Now().Format(time.RFC3339)}},
	}}})
	if err != nil {
		return err
	}
	_, err = c.objects.Resource(deployments()).Namespace(namespace).
		Patch(ctx, ControllerDeployment, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsNotFound(err):
		return c.missing(ctx, "deployment "+ControllerDeployment, namespace, hintInstalled)
	case err != nil:
		return c.explain(err, fmt.Sprintf("restart deployment %s/%s", namespace, ControllerDeployment))
	}
	return nil
}

// AwaitRollout waits until all pods of CAPA's controller are updated and available, the
// Deployment fails, or the context ends.
func (c *Cluster) AwaitRollout(ctx context.Context, namespace string, tell func(string)) error {
	for said := ""; ; {
		d, err := c.objects.Resource(deployments()).Namespace(namespace).Get(ctx, ControllerDeployment, metav1.GetOptions{})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return c.explain(err, fmt.Sprintf("read deployment %s/%s", namespace, ControllerDeployment))
		}
		done, state, err := progress(d)
		if done || err != nil {
			return err
		}
		if state != said {
			tell(state)
			said = state
		}
		if err := c.clock.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// progress returns the progress of a Deployment, as "kubectl rollout status" does.
func progress(d *unstructured.Unstructured) (done bool, state string, err error) {
	number := func(fields ...string) int64 {
		n, _, _ := unstructured.NestedInt64(d.Object, fields...)
		return n
	}
	wanted, given, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
	if !given {
		wanted = 1
	}
	updated, all, available := number("status", "updatedReplicas"), number("status", "replicas"), number("status", "availableReplicas")
	if number("status", "observedGeneration") < d.GetGeneration() {
		return false, "waiting for the deployment spec update to be observed", nil
	}
	for _, c := range conditions(d) {
		if c["type"] == "Progressing" && c["reason"] == "ProgressDeadlineExceeded" {
			return false, "", fmt.Errorf(
				"deployment %s/%s: %v; 'kubectl -n %s describe pods' shows the reason",
				d.GetNamespace(),
				d.GetName(),
				c["message"],
				d.GetNamespace(),
			)
		}
	}
	switch {
	case updated < wanted:
		return false, fmt.Sprintf("%d of %d pods are updated", updated, wanted), nil
	case all > updated:
		return false, fmt.Sprintf("%d old pods are terminating", all-updated), nil
	case available < updated:
		return false, fmt.Sprintf("%d of %d updated pods are available", available, updated), nil
	}
	return true, "", nil
}
