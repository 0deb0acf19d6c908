package storage

import "context"

// Urgent gives a context whose calls no wrapper holds back for the sake of a limit:
// a lease that waits its turn behind large files would be lost.
func Urgent(ctx context.Context) context.Context { return context.WithValue(ctx, urgent{}, true) }

// IsUrgent reports whether the context is one of Urgent's, or below one.
func IsUrgent(ctx context.Context) bool { return ctx.Value(urgent{}) != nil }

type urgent struct{}
