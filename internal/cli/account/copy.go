package account

import (
	"context"
	"os"
	"path/filepath"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/simulated"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
)

// Asked records the calls of a plan.
type Asked = simulated.Asked

// NewAsked returns an empty record.
func NewAsked() *Asked { return simulated.NewAsked() }

// CopyOf makes a simulated account in a folder that has the resources of an account, and
// makes it the account of the command. save is a file for it; "" for none.
func (f *Flags) CopyOf(ctx context.Context, a *Account, asked *Asked, folder, save string) error {
	file := filepath.Join(folder, "account.json")
	remarks, err := simulated.Copy(ctx, a.Config, asked, file)
	for _, r := range remarks {
		f.Env.Story("note: %s", r)
	}
	if err != nil {
		return err
	}
	if save != "" {
		if err := keep(file, save); err != nil {
			return err
		}
		f.Env.Story("wrote %s: --simulate --simulate-state %[1]s uses this copy in any command", save)
	}
	f.Simulate, f.SimulateState = true, file
	return nil
}

// keep copies a file to a new one that only the user can read.
func keep(file, to string) error {
	data, err := os.ReadFile(file) //nolint:gosec // the program has made it
	if err != nil {
		return err
	}
	return files.Replace(to, data, files.Private)
}
