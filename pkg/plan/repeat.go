package plan

// Repeat says what it helps to repeat a run that has failed.
type Repeat string

// The values of Repeat.
const (
	RepeatContinues   Repeat = ""             // the next run continues
	RepeatCheck       Repeat = "check"        // the next run continues, unless one of the findings is so again
	RepeatLater       Repeat = "later"        // AWS lacks capacity for a type of machine, for an unknown time
	RepeatAfterChange Repeat = "after change" // the next run ends in the same way, unless something is changed first
)
