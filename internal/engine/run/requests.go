package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/smithy-go"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/apimodel"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// checkRequests builds the requests that the run would send to create and to update resources, with what is known now, and
// checks them against the models of AWS's APIs. It sends nothing. AWS may have added a value since: that is a warning.
func (p *planning) checkRequests(ctx context.Context) (reasons []error) {
	models, err := apimodel.Load()
	if err != nil {
		return []error{err}
	}
	told := map[string]bool{}
	for _, s := range p.Plan.Steps {
		if s.Action != plan.Create && s.Action != plan.Update {
			continue
		}
		for _, v := range p.violations(ctx, models, s) {
			key := s.Origin + v.String()
			if told[key] { // machines of a group have the same request
				continue
			}
			told[key] = true
			why := errors.New("AWS's API does not take this: " + v.String())
			at := p.locate(s.Origin, why)
			if v.Unsure {
				p.Warn("%s: %s: AWS's API is not known to take this: %s", at, s.Resource, v)
				continue
			}
			reasons = append(reasons, &plan.ResourceError{Resource: s.Resource, Origin: at, Err: why})
		}
	}
	return reasons
}

// violations returns what is wrong with the first request that creates or updates a resource.
func (p *planning) violations(ctx context.Context, models apimodel.Models, s plan.Step) (found []apimodel.Violation) {
	n := p.Built.Resource(s.Resource)
	look := func(service, operation string, input any) {
		if models.Knows(service, operation) {
			found = append(found, models.Check(service, operation, input)...)
		}
	}
	rehearsed := kindsByName()[s.Resource.Kind()].Rehearsed
	if r, ok := n.Desired().(graph.Requested); ok && (s.Action == plan.Create || rehearsed) {
		if service, operation, input := r.Request(); input != nil {
			look(service, operation, input)
		}
		return found
	}
	if !rehearsed {
		return nil
	}
	err := graph.Rehearse(cloud.Inspecting(ctx, look), p.Cloud, n, s.Diff)
	if missing := new(smithy.InvalidParamsError); errors.As(err, missing) {
		found = append(found, apimodel.Violation{Member: fmt.Sprint(missing), What: "is required"})
	}
	return found
}
