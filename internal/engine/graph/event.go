package graph

// NotYet wraps an error that is expected to disappear with time, such as a dependency
// that AWS is still deleting. The executor tries again.
func NotYet(err error) error { return &notYetError{err} }

type notYetError struct{ error }

func (e *notYetError) Unwrap() error { return e.error }
