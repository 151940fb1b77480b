package kubesim

import "time"

// jobTakes is how long the pods of a Job run here.
const jobTakes = 10 * time.Second

// settleJobs sets the status of Jobs, as the Job controller does (pkg/controller/job of Kubernetes v1.34.2), and removes those that are complete and
// have ttlSecondsAfterFinished (pkg/controller/ttlafterfinished). Their pods are not objects here, unless an image is broken.
func (c *Cluster) settleJobs(now time.Time, nodes []Object) {
	for _, path := range c.paths("Job") {
		o := c.Objects[path]
		isTaken := func() bool {
			_, ready := takersOf(o, nodes)
			return ready > 0
		}
		switch began := instant(o, "status", "startTime"); {
		case completed(o):
			ended := instant(o, "status", "completionTime")
			if ttl, given := value(o, "spec", "ttlSecondsAfterFinished").(float64); given && now.Sub(ended) >= time.Duration(ttl)*time.Second {
				delete(c.Objects, path)
			}
		case value(o, "spec", "suspend") == true:
			if text(o, "kubesim", "state") != "suspended" {
				o["kubesim"] = Object{"state": "suspended"}
				o["status"] = Object{"conditions": []any{Object{"type": "Suspended", "status": "True", "reason": "JobSuspended"}}}
				c.put(path, o, now)
			}
		case began.IsZero():
			o["status"] = Object{"startTime": now.UTC().Format(time.RFC3339), "active": 1.0}
			c.put(path, o, now)
		case c.broken(o) || !isTaken():
		case text(o, "kubesim", "running") == "":
			o["kubesim"] = Object{"running": now.UTC().Format(time.RFC3339)}
			c.put(path, o, now)
		case now.Sub(instant(o, "kubesim", "running")) >= startsIn+jobTakes:
			o["status"] = Object{
				"startTime": text(o, "status", "startTime"), "completionTime": now.UTC().Format(time.RFC3339), "succeeded": succeededOf(o),
				"conditions": []any{
					Object{"type": "SuccessCriteriaMet", "status": "True", "reason": "CompletionsReached"},
					Object{"type": "Complete", "status": "True", "reason": "CompletionsReached"},
				},
			}
			c.put(path, o, now)
		}
	}
}

func completed(job Object) bool { return text(job, "status", "completionTime") != "" }

// succeededOf returns how many pods of a Job succeed here: its completions, or one.
func succeededOf(job Object) float64 {
	if n := completions(job); n >= 0 {
		return n
	}
	return 1
}

// instant reads a time. It is zero if there is none, or an invalid one.
func instant(o Object, at ...string) time.Time {
	t, err := time.Parse(time.RFC3339, text(o, at...))
	if err != nil {
		return time.Time{}
	}
	return t
}
