package loader

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekswebhooks "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/webhooks"
	"sigs.k8s.io/cluster-api-provider-aws/v2/webhooks"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/hooks"
)

// capaHook is the part of CAPA's webhooks that needs no API server. Some of them also set
// defaults.
type capaHook interface {
	ValidateCreate(ctx context.Context, obj runtime.Object) (admission.Warnings, error)
}

type capaDefaulter interface {
	Default(ctx context.Context, obj runtime.Object) error
}

func hookFor(kind string) capaHook {
	switch kind {
	case manifest.KindAWSCluster:
		return &webhooks.AWSCluster{}
	case manifest.KindAWSMachine:
		return &webhooks.AWSMachine{}
	case manifest.KindAWSMachineTemplate:
		return &webhooks.AWSMachineTemplate{}
	case manifest.KindControllerIdentity:
		return &webhooks.AWSClusterControllerIdentity{}
	case manifest.KindRoleIdentity:
		return &webhooks.AWSClusterRoleIdentity{}
	case manifest.KindStaticIdentity:
		return &webhooks.AWSClusterStaticIdentity{}
	case manifest.KindManagedPlane:
		return &ekswebhooks.AWSManagedControlPlane{}
	default:
		return nil
	}
}

// capaWebhook runs CAPA's webhook on an object of CAPA.
func (l *loader) capaWebhook(ctx context.Context, o *manifest.Entry, value any) {
	obj, ok := value.(runtime.Object)
	hook := hookFor(o.Kind)
	if !ok || hook == nil {
		return
	}
	if defaulter, ok := hook.(capaDefaulter); ok {
		if err := hooks.RecoverPanics(func() error { return defaulter.Default(ctx, obj) }); err != nil {
			l.failHook(o, err)
			return
		}
	}
	if machine, ok := value.(*infrav1.AWSMachine); ok {
		infrav1.SetDefaults_AWSMachineSpec(&machine.Spec)
	}
	var warnings admission.Warnings
	err := hooks.RecoverPanics(func() error {
		var err error
		warnings, err = hook.ValidateCreate(ctx, obj)
		return err
	})
	for _, w := range withoutSecond(warnings) {
		l.warn(balancerWarning(o, w))
	}
	if err != nil {
		l.failHook(o, err)
		return
	}
	if template, ok := value.(*infrav1.AWSMachineTemplate); ok {
		l.asMachine(ctx, o, template)
	}
}

// withoutSecond leaves out the warning about an unset protocol of the health check if there is also the warning that classic load balancers
// are deprecated: one warning for one load balancer is enough. For an existing cluster, the plan shows the change of the health check.
func withoutSecond(warnings admission.Warnings) admission.Warnings {
	contains := func(part string) func(string) bool {
		return func(w string) bool { return strings.Contains(strings.ToLower(w), part) }
	}
	if !slices.ContainsFunc(warnings, contains(deprecatedBalancer)) {
		return warnings
	}
	return slices.DeleteFunc(slices.Clone(warnings), contains(unsetProtocol))
}

// Parts of CAPA's warnings about load balancers.
const (
	unsetProtocol      = "healthcheck protocol is not set"
	deprecatedBalancer = "classic elb which is deprecated"
)

// balancerWarning returns a warning of the webhooks with its field and its fix. All their warnings are about load balancers.
func balancerWarning(o *manifest.Entry, w string) manifest.Problem {
	path, fix := "spec.controlPlaneLoadBalancer", ""
	switch text := strings.ToLower(w); {
	case strings.Contains(text, unsetProtocol), strings.Contains(text, "ssl health check"):
		path, fix = path+".healthCheckProtocol", "write healthCheckProtocol: TCP"
	case strings.Contains(text, deprecatedBalancer):
		fix = "for a new cluster, write loadBalancerType: nlb"
	}
	return o.Problem(path, lowerFirst(w), fix)
}

// asMachine applies the defaults for the machines of a template, and reports the problems
// that CAPA would report only when it creates the machines.
func (l *loader) asMachine(ctx context.Context, o *manifest.Entry, t *infrav1.AWSMachineTemplate) {
	machine := &infrav1.AWSMachine{ObjectMeta: t.ObjectMeta, Spec: t.Spec.Template.Spec}
	l.capaWebhook(ctx, &manifest.Entry{Kind: manifest.KindAWSMachine, Name: o.Name, Titled: o.Title(), Version: o.Version, Lines: o.Lines}, machine)
	t.Spec.Template.Spec = machine.Spec
}

// admitNetwork checks the network and the SSH key of an EKS control plane, of which CAPA's webhook for EKS checks
// less than that of an AWSCluster.
func (l *loader) admitNetwork(ctx context.Context) {
	if _, err := (&webhooks.AWSCluster{}).ValidateCreate(ctx, l.cluster.Infra); err != nil {
		l.failHook(l.infra, err)
	}
}

// failHook reports the error of a webhook, one problem for each cause.
func (l *loader) failHook(o *manifest.Entry, err error) {
	var single *field.Error
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &single):
		l.failFields(o, field.ErrorList{single})
	case errors.As(err, &status) && status.Status().Details != nil:
		for _, c := range status.Status().Details.Causes {
			if p := cause(o, c); !l.isMisnamed(o, p.Path) && !l.followsFromInvalid(o, p.Path) {
				l.fail(p)
			}
		}
	default:
		l.fail(o.Problem("", err.Error(), ""))
	}
}

// cause converts a cause in an API status. Its message consists of the kind of error, the
// value and the detail, separated by colons.
func cause(o *manifest.Entry, c metav1.StatusCause) manifest.Problem {
	e := &field.Error{Type: field.ErrorType(c.Type), Field: c.Field}
	rest := strings.TrimPrefix(c.Message, e.Type.String())
	rest = strings.TrimPrefix(rest, ": ")
	if e.Type == field.ErrorTypeInvalid || e.Type == field.ErrorTypeNotSupported {
		e.BadValue, rest = cutValue(rest)
	}
	e.Detail = rest
	return fieldProblem(o, e)
}

// cutValue removes the printed value from the beginning of a message.
func cutValue(message string) (value any, rest string) {
	if quoted, err := strconv.QuotedPrefix(message); err == nil {
		text, _ := strconv.Unquote(quoted)
		return text, strings.TrimPrefix(message[len(quoted):], ": ")
	}
	decoder := json.NewDecoder(strings.NewReader(message))
	if err := decoder.Decode(&value); err != nil {
		return nil, message
	}
	return value, strings.TrimPrefix(message[decoder.InputOffset():], ": ")
}
