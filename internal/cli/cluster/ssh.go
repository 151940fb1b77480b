package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

type sshOptions struct {
	manifestFlags
	via               choice
	user, bastionUser string
}

// The ways to a machine.
const (
	viaAny     = "auto"
	viaSession = "session-manager"
	viaBastion = "bastion"
)

func newSSH(f *flags) *cobra.Command {
	o := &sshOptions{manifestFlags: manifestFlags{flags: f}, via: choice{value: viaAny, of: []string{viaAny, viaSession, viaBastion}}}
	cmd := &cobra.Command{
		Use:   "ssh {-f FILE | NAME} NODE [-- SSH-ARGUMENT...]",
		Short: "Open a shell on a machine of a cluster",
		Long: `Open a shell on a machine of a cluster: with Session Manager if session-manager-plugin is
installed (newer than 1.2.497.0) and Systems Manager reaches the machine, otherwise with
your ssh through the bastion of the cluster. --via chooses one of them.

NODE is a machine: its ID, the name of its Node, its private address, its tag Name, or
what describe calls it (demo-md-0/0).

Session Manager needs no key and no open port: the SSM agent has to run on the machine,
its role needs the permissions of AmazonSSMManagedInstanceCore, and you need
ssm:StartSession. The bastion needs spec.bastion.enabled, and a key pair (sshKeyName)
whose private key your ssh finds: 'ssh-add FILE' gives it to the bastion and to the
machine. Arguments behind -- are passed to ssh.

The exit code is that of the shell.`,
		Example: `  clusterawsadm cluster ssh demo demo-md-0/0
  clusterawsadm cluster ssh -f demo.yaml ip-10-0-1-7.ec2.internal --via bastion --user ec2-user`,
		RunE: func(cmd *cobra.Command, args []string) error {
			own, more := args, []string(nil)
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				own, more = args[:at], args[at:]
			}
			name, node, err := o.names(own)
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), name, node, more)
		},
	}
	o.addManifest(cmd)
	cmd.Flags().Var(&o.via, "via", "way to the machine: "+strings.Join(o.via.of, ", "))
	complete(cmd, "via", o.via.of)
	cmd.Flags().StringVar(&o.user, "user", "ubuntu", "`NAME` of the user on the machine, for ssh: ubuntu, ec2-user, core")
	cmd.Flags().StringVar(&o.bastionUser, "bastion-user", "ubuntu", "`NAME` of the user on the bastion, for ssh")
	return cmd
}

func (o *sshOptions) run(ctx context.Context, name []string, node string, more []string) (err error) {
	if strings.HasPrefix(o.user, "-") || strings.HasPrefix(o.bastionUser, "-") || strings.ContainsAny(o.user+o.bastionUser, " @,") {
		return env.Usagef("--user and --bastion-user are names of users")
	}
	x, err := o.subject(ctx, name, runFlags{})
	if err != nil {
		return err
	}
	defer x.Close(&err)
	r, err := x.cluster.Reach(ctx, node)
	if errors.Is(err, cluster.ErrNotFound) {
		return o.notFound(x.cluster.Name, x.cluster.Region)
	}
	if err != nil {
		return err
	}
	if o.via.value == viaBastion {
		return o.throughBastion(x, r, more, errors.New("the cluster has no bastion that runs: set spec.bastion.enabled, and run create"))
	}
	lacking := o.plugin(ctx)
	if lacking == nil {
		s, err := x.cluster.StartSession(ctx, r.Machine)
		if err == nil {
			return o.openSession(x, s)
		}
		lacking = err
	}
	var noPlugin pluginError
	if o.via.value == viaSession || !errors.As(lacking, &noPlugin) && !errors.Is(lacking, cluster.ErrNotConnected) {
		return lacking
	}
	return o.throughBastion(x, r, more, fmt.Errorf("%w; or give the cluster a bastion (spec.bastion.enabled)", lacking))
}

// throughBastion opens a shell with ssh through the bastion of the cluster. If there is no bastion, it returns the error that it
// is given.
func (o *sshOptions) throughBastion(x *subject, r cluster.Reach, more []string, without error) error {
	switch {
	case r.Bastion == "":
		return without
	case r.Key == "":
		return errors.New("machine " + r.Machine + " has no key pair: set sshKeyName, which replaces the machine, or use Session Manager")
	}
	return o.attach(x, append(append([]string{"ssh", "-J", o.bastionUser + "@" + r.Bastion}, more...), o.user+"@"+r.Address), nil)
}

// The answer of StartSession contains a token. Versions of the plugin after lastWithoutEnv read it from an environment variable.
// Older ones read it from their arguments, which other users of this machine can see (AWS CLI, sessionmanager.py).
const (
	plugin         = "session-manager-plugin"
	lastWithoutEnv = "1.2.497.0"
	responseIn     = "AWS_SSM_START_SESSION_RESPONSE"
)

// pluginError is the reason why session-manager-plugin cannot be used.
type pluginError string

func (e pluginError) Error() string { return string(e) }

// plugin returns a pluginError if session-manager-plugin is missing or too old.
func (o *sshOptions) plugin(ctx context.Context) error {
	const guide = "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"
	printed, err := o.Env.Output(ctx, []string{plugin, "--version"})
	installed := strings.TrimSpace(printed)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return pluginError(plugin + " is not installed: see " + guide)
	case err != nil:
		return pluginError(plugin + " --version: " + err.Error())
	case !newer(installed, lastWithoutEnv):
		return pluginError(plugin + " " + installed + " takes secrets as arguments: install a newer one than " + lastWithoutEnv + ": see " + guide)
	}
	return nil
}

// newer reports whether a version of numbers with dots is newer than another one.
func newer(text, than string) bool {
	have, err := utilversion.ParseGeneric(text)
	return err == nil && have.GreaterThan(utilversion.MustParseGeneric(than))
}

// openSession runs the plugin, which connects the terminal to the session.
func (o *sshOptions) openSession(x *subject, s cluster.Session) error {
	response, err := json.Marshal(map[string]string{"SessionId": s.ID, "TokenValue": s.Token, "StreamUrl": s.URL})
	if err != nil {
		return err
	}
	request, err := json.Marshal(map[string]string{"Target": s.Machine})
	if err != nil {
		return err
	}
	return o.attach(
		x,
		[]string{plugin, responseIn, s.Region, "StartSession", o.Profile, string(request), s.Endpoint},
		[]string{responseIn + "=" + string(response)},
	)
}

// attach runs a program on the terminal. With --simulate it only prints the command, because no machine exists.
func (o *sshOptions) attach(x *subject, command, variables []string) error {
	o.Env.Story("%s", env.Valid(strings.Join(command, " ")))
	if x.Simulated() {
		return errors.New("a simulated machine has no shell: on AWS, this command runs")
	}
	code, err := o.Env.Attach(command, variables)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New(command[0] + " is not installed")
	case err != nil:
		return err
	case code != 0:
		return &env.ExitError{Code: code}
	}
	return nil
}
