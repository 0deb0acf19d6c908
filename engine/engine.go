// Package engine says where the tasks of a job run. So far there is one place:
// this process, a bounded number at a time.
package engine

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
)

// Local runs do for every task, at most n at a time, and returns when all have
// ended. Tasks are drawn from the sequence only when one can start, so a
// sequence may be as long as it likes. The first error cancels the others and is
// returned; a sequence that ends in an error counts as a task that failed.
func Local[T any](ctx context.Context, n int, tasks iter.Seq2[T, error], do func(context.Context, T) error) error {
	parent := ctx
	g, ctx := errgroup.WithContext(parent)
	type drawn struct {
		task T
		err  error
	}
	more := make(chan drawn)
	// work goes on with the next task in the same goroutine, whose stack has grown by
	// then to what a task needs.
	work := func(d drawn) error {
		for ok := true; ok; d, ok = <-more {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if d.err != nil {
				return d.err
			}
			if err := do(ctx, d.task); err != nil {
				return err
			}
		}
		return nil
	}
	workers := 0
	for task, err := range tasks {
		if ctx.Err() != nil {
			break
		}
		d := drawn{task, err}
		select {
		case more <- d: // somebody waits for it
		default:
			if workers < max(n, 1) {
				workers++
				g.Go(func() error { return work(d) })
				break
			}
			select {
			case more <- d:
			case <-ctx.Done(): // who has failed takes no more
			}
		}
		if err != nil {
			break
		}
	}
	close(more)
	if err := g.Wait(); err != nil {
		return err
	}
	return context.Cause(parent) // a cancelled parent may have kept tasks from starting
}

// Each turns a slice into a sequence of tasks.
func Each[T any](tasks []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, t := range tasks {
			if !yield(t, nil) {
				return
			}
		}
	}
}
