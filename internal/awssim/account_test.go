package awssim

// of returns a service of an account.
func of[S inventory](a *AWS) S {
	for _, s := range a.services {
		if s, ok := s.(S); ok {
			return s
		}
	}
	panic("no such service")
}
