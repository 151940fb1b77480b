// Package runcommand reads from machines with SSM Run Command. AWS keeps the output of a command
// for 30 days, and shows it to whoever may call ssm:GetCommandInvocation; the agent keeps a copy on
// the machine. So the output is encrypted with a key of this run before it leaves the script.
package runcommand
