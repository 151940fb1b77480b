package diagnose

import (
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
)

// cause is a known error that machines write to their console.
type cause struct {
	says, means string
	another     bool // another machine of the same template may not meet it
	change      bool // every machine of the template meets it, until the manifest or its image is changed
}

// ChangeFirst is the end of a finding whose cause also makes the next machine fail.
const ChangeFirst = "without a change, another run ends in the same way"

// text is the advice of a cause.
func (c cause) text() string {
	if c.change {
		return c.means + "; " + ChangeFirst
	}
	return c.means
}

// causes lists the known errors, the most specific first.
func (q *machineCheck) causes() []cause {
	data := "its boot data"
	if q.fetch != nil {
		data = q.fetch.first
	}
	gone := data + " did not exist any more when it tried to fetch it: " + q.replaceIt()
	return []cause{
		{
			says:   "no AWS CLI",
			means:  "its image " + q.machine.Image + " has no AWS CLI to fetch its boot data with: use one made for Cluster API, or set cloudInit.insecureSkipSecretsManager",
			change: true,
		},
		{
			says:   boot.NotApplied,
			means:  "the cloud-init of its image " + q.machine.Image + " has not applied its boot data: use an image made for Cluster API, or set cloudInit.insecureSkipSecretsManager",
			change: true,
		},
		{says: "ResourceNotFoundException", means: gone, another: true},
		{says: "ParameterNotFound", means: gone, another: true},
		{
			says:   "AccessDenied",
			means:  "the role of its instance profile " + q.machine.Profile + " may not do what it needs: `clusterawsadm bootstrap iam update-cloudformation-stack` updates those of Cluster API; " + q.rebootIt(),
			change: true,
		},
		{says: "Unable to locate credentials", means: "it has no role: name an instance profile in iamInstanceProfile; " + q.replaceIt(), change: true},
		{says: "Could not connect to the endpoint", means: "it cannot reach the APIs of AWS: check its routes and security groups; " + q.rebootIt()},
		{says: "cannot be fetched", means: data + " could not be fetched: the reason is below; " + q.rebootIt()},
		{says: "kubeadm: command not found", means: "its image " + q.machine.Image + " has no kubeadm: use one made for Cluster API", change: true},
		{
			says:   "this version of kubeadm only supports",
			means:  "its image " + q.machine.Image + " has a kubeadm of another version than the manifest's: name one of that version in ami",
			change: true,
		},
		{
			says:    "none of the public keys",
			means:   "the cluster CA at the API server is not the one whose hash the machine was given: another server answers there, or the machine belongs to an earlier cluster; " + q.replaceIt(),
			another: true,
		},
		{says: "could not find a JWS signature", means: "its bootstrap token has expired, or the cluster never knew it: " + q.replaceIt(), another: true},
		{
			says:  "couldn't validate the identity of the API Server",
			means: "it could not reach the API server: check the load balancer and its security groups; " + q.replaceIt(),
		},
		{
			says:   "[ERROR ",
			means:  "the machine does not pass the preflight checks of kubeadm: change that in the manifest (instanceType, preKubeadmCommands) or have it ignored (ignorePreflightErrors); " + q.replaceIt(),
			change: true,
		},
		{says: boot.JoinGaveUp + ": " + boot.IsMember, means: "kubeadm join has failed after it had added the machine to etcd: " + q.replaceIt(), another: true},
		{says: boot.JoinGaveUp, means: "kubeadm join has failed again and again, and is not repeated any more: the reason is below; " + q.replaceIt(), another: true},
	}
}

// known returns the first known error in the console output, and its line.
func (q *machineCheck) known(text []string) (*cause, string) {
	for _, c := range q.causes() {
		for _, line := range text {
			if strings.Contains(line, c.says) {
				return &c, line
			}
		}
	}
	return nil, ""
}

// waitsForNetwork returns the line with which the script that fetches boot data says that
// it waits for a connection; "" if it does not wait any more.
func waitsForNetwork(text []string) (waits string) {
	for _, line := range text {
		switch {
		case strings.Contains(line, boot.WaitsForNetwork), strings.Contains(line, boot.BootsAgain):
			waits = line
		case strings.Contains(line, "user data: ") && !strings.Contains(line, "fetch"), isOfKubeadm(line): // it has gone on
			waits = ""
		}
	}
	return waits
}

// isOfKubeadm reports whether kubeadm has written a line: it begins with the phase, such as "[preflight]".
func isOfKubeadm(line string) bool {
	return slices.ContainsFunc(
		[]string{"kubeadm", "[init]", "[preflight]", "This node has joined"},
		func(part string) bool { return strings.Contains(line, part) },
	)
}
