package run

import (
	"slices"
	"strings"

	"github.com/aws/smithy-go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Repeats says what it helps to repeat a run that has failed with an error: that alone, only if it helps for
// all causes.
func Repeats(err error) (worst plan.Repeat) {
	order := []plan.Repeat{plan.RepeatContinues, plan.RepeatCheck, plan.RepeatLater, plan.RepeatAfterChange}
	visit(err, func(one error) {
		if repeat := repeats(one); slices.Index(order, repeat) > slices.Index(order, worst) {
			worst = repeat
		}
	})
	return worst
}

// visit calls a function with every error of a tree.
//
//nolint:errorlint // it visits every error of the tree itself
func visit(err error, f func(error)) {
	if err == nil {
		return
	}
	f(err)
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			visit(one, f)
		}
	case interface{ Unwrap() error }:
		visit(e.Unwrap(), f)
	}
}

// repeats is Repeats for one error of a tree.
//
//nolint:errorlint // visit calls it with every error of the tree
func repeats(err error) plan.Repeat {
	if d, is := err.(plan.Diagnosed); is {
		findings, _ := d.Diagnosis()
		if slices.ContainsFunc(findings, func(finding string) bool { return strings.Contains(finding, diagnose.ChangeFirst) }) {
			return plan.RepeatAfterChange
		}
	}
	switch e := err.(type) {
	case *plan.TimeoutError:
		switch {
		case e.Awaited != nil && cloud.LacksCapacity(e.Awaited.Error()):
			return plan.RepeatLater
		case len(e.Findings) > 0:
			return plan.RepeatCheck
		}
	case *graph.FailedError:
		if cloud.LacksCapacity(e.Reason) {
			return plan.RepeatLater
		}
		return plan.RepeatCheck
	case *plan.ConflictError, *plan.NoQuorumError, *kube.UnknownKindError:
		return plan.RepeatAfterChange
	case apierrors.APIStatus:
		if refusesObject(e.Status().Reason) {
			return plan.RepeatAfterChange
		}
	case smithy.APIError:
		switch {
		case cloud.LacksCapacity(e.ErrorCode()):
			return plan.RepeatLater
		case cloud.RefusesInput(e.ErrorCode()), cloud.Denied(err):
			return plan.RepeatAfterChange
		}
	}
	return plan.RepeatContinues
}

// refusesObject reports whether an API server answers so to the same object always.
func refusesObject(reason metav1.StatusReason) bool {
	return slices.Contains([]metav1.StatusReason{
		metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonForbidden, metav1.StatusReasonMethodNotAllowed,
		metav1.StatusReasonUnsupportedMediaType, metav1.StatusReasonRequestEntityTooLarge,
	}, reason)
}
