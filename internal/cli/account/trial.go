package account

import "github.com/clusterawsadm/clusterawsadm/internal/cli/simulated"

// Trial is a copy of a simulated account in memory.
type Trial = simulated.Trial

// Kill kills a program that uses a Trial at one of its calls.
type Kill = simulated.Kill

// Trial copies a simulated account.
func (a *Account) Trial() (*Trial, error) { return a.simulated.Trial() }
