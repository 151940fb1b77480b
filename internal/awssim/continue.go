package awssim

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

// Continue returns an account from the content of a file that Save has written. Its clock
// begins at the time at which it was saved. Its region is that of the file, if the options have
// none.
func Continue(file []byte, begin func(time.Time) *clock.Clock, o Options) (*AWS, error) {
	var saved struct{ Now time.Time }
	if err := json.Unmarshal(file, &saved); err != nil {
		return nil, err
	}
	if o.Region == "" {
		var err error
		if o.Region, err = SavedRegion(bytes.NewReader(file)); err != nil {
			return nil, err
		}
	}
	o.Clock = begin(saved.Now)
	return Load(bytes.NewReader(file), o)
}

// Fork returns a copy of the account, which then changes independently. The clock of the copy
// begins at the time of this one.
func (a *AWS) Fork(begin func(time.Time) *clock.Clock) (*AWS, error) {
	var file bytes.Buffer
	if err := a.Save(&file); err != nil {
		return nil, err
	}
	return Continue(file.Bytes(), begin, a.account.Options)
}

// After returns a copy of the account as it is after some time in which nobody calls it.
func (a *AWS) After(d time.Duration) (*AWS, error) {
	var file bytes.Buffer
	if err := a.Save(&file); err != nil {
		return nil, err
	}
	o := a.account.Options
	o.Clock = clock.Fast(o.Clock.Now().Add(d), 1)
	return Load(&file, o)
}

// Clock returns the clock of the account; nil is the system clock.
func (a *AWS) Clock() *clock.Clock { return a.account.Clock }
