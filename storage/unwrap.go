package storage

// Unwrapper is a store around another one that changes neither its keys nor what
// they hold: what the inner one says of its place holds for both.
type Unwrapper interface {
	Unwrap() Store
}

// As finds what can do T: the store, or one that it is around. It is for questions
// about the place, such as how its bucket is set up. What works on objects goes
// through the wrappers and has a function of its own, such as HolderOf.
func As[T any](s Store) (T, bool) {
	for {
		if t, ok := s.(T); ok {
			return t, true
		}
		u, ok := s.(Unwrapper)
		if !ok {
			var none T
			return none, false
		}
		s = u.Unwrap()
	}
}
