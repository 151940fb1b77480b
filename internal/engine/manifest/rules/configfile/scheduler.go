package configfile

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	scheduler "k8s.io/kube-scheduler/config/v1"
	kjson "sigs.k8s.io/json"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/components"
)

// scheduler is ValidateKubeSchedulerConfiguration in pkg/scheduler/apis/config/validation of Kubernetes, and what Config in
// cmd/kube-scheduler/app/options needs.
func (r *reader) scheduler(obj runtime.Object) {
	config, ok := obj.(*scheduler.KubeSchedulerConfiguration)
	if !ok {
		return
	}
	if config.ClientConnection.Kubeconfig == "" {
		r.refuse(
			"set clientConnection.kubeconfig: /etc/kubernetes/scheduler.conf",
			"it has no configuration of a client, clientConnection.kubeconfig: the scheduler ignores --kubeconfig beside --config, and does not find the API server",
		)
	}
	if n := config.Parallelism; n != nil && *n <= 0 {
		r.invalid(field.NewPath("parallelism"), *n, "should be an integer value greater than zero")
	}
	r.share(field.NewPath("percentageOfNodesToScore"), config.PercentageOfNodesToScore)
	first, most := int64(1), int64(10)
	if n := config.PodInitialBackoffSeconds; n != nil {
		if first = *n; first <= 0 {
			r.invalid(field.NewPath("podInitialBackoffSeconds"), first, "must be greater than 0")
		}
	}
	if n := config.PodMaxBackoffSeconds; n != nil {
		most = *n
	}
	if most < first {
		r.invalid(field.NewPath("podMaxBackoffSeconds"), most, "must be greater than or equal to podInitialBackoffSeconds")
	}
	var names []string
	for i := range config.Profiles {
		profile, at := &config.Profiles[i], field.NewPath("profiles").Index(i)
		name := "default-scheduler"
		if profile.SchedulerName != nil {
			name = *profile.SchedulerName
		} else if len(config.Profiles) > 1 { // only that of a single profile has a default
			r.refuseAll(field.ErrorList{field.Required(at.Child("schedulerName"), "")})
		}
		if slices.Contains(names, name) {
			r.refuseAll(field.ErrorList{field.Duplicate(at.Child("schedulerName"), name)})
		}
		names = append(names, name)
		r.share(at.Child("percentageOfNodesToScore"), profile.PercentageOfNodesToScore)
		r.plugins(at, profile)
	}
}

func (r *reader) invalid(at *field.Path, value any, why string) {
	r.refuseAll(field.ErrorList{field.Invalid(at, value, why)})
}

func (r *reader) share(at *field.Path, n *int32) {
	if n != nil && (*n < 0 || *n > 100) {
		r.invalid(at, *n, "not in valid range [0-100]")
	}
}

// plugins checks whether the scheduler has the plugins that a profile enables, and whether the plugins have the arguments in the profile.
func (r *reader) plugins(at *field.Path, profile *scheduler.KubeSchedulerProfile) {
	if p := profile.Plugins; p != nil {
		for _, set := range []struct {
			point string
			scheduler.PluginSet
		}{
			{"multiPoint", p.MultiPoint},
			{"preEnqueue", p.PreEnqueue},
			{"queueSort", p.QueueSort},
			{"preFilter", p.PreFilter},
			{"filter", p.Filter},
			{"postFilter", p.PostFilter},
			{"preScore", p.PreScore},
			{"score", p.Score},
			{"reserve", p.Reserve},
			{"permit", p.Permit},
			{"preBind", p.PreBind},
			{"bind", p.Bind},
			{"postBind", p.PostBind},
		} {
			for i, plugin := range set.Enabled {
				r.plugin(at.Child("plugins", set.point, "enabled").Index(i).Child("name"), plugin.Name)
			}
		}
	}
	var names []string
	for i, config := range profile.PluginConfig {
		at := at.Child("pluginConfig").Index(i)
		if slices.Contains(names, config.Name) {
			r.refuseAll(field.ErrorList{field.Duplicate(at, config.Name)})
		}
		names = append(names, config.Name)
		r.pluginArguments(at.Child("args"), config)
	}
}

// plugin refuses a plugin that the scheduler of the chosen Kubernetes version does not have (NewFramework in pkg/scheduler/framework/runtime). It
// refuses none if the scheduler may run from another image.
func (r *reader) plugin(at *field.Path, name string) {
	row := components.SchedulerPlugin(name)
	if _, has := row.In(r.Minor); has || r.OtherImage || !components.Known(r.Minor) {
		return
	}
	what := "the scheduler has no plugin " + name
	if removed, was := row.Removed(r.Minor); was {
		r.refuse("remove it", "%s: %s since Kubernetes 1.%d", at, what, removed)
		return
	}
	r.refuse("correct the name, or remove it", "%s: %s", at, what)
}

// pluginArguments checks the arguments of a plugin against their type.
func (r *reader) pluginArguments(at *field.Path, config scheduler.PluginConfig) {
	gvk := scheduler.SchemeGroupVersion.WithKind(config.Name + "Args")
	raw := config.Args.Raw
	if len(raw) == 0 || !known().Recognizes(gvk) {
		return
	}
	args, err := known().New(gvk)
	if err != nil {
		return
	}
	unknown, err := kjson.UnmarshalStrict(raw, args)
	if err != nil {
		unknown = []error{err}
	}
	for _, e := range unknown {
		r.refuse("correct its name, or remove it", "%s: %s", at, strings.TrimPrefix(e.Error(), "json: "))
	}
}
