package engine_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"hbackup/engine"
)

func TestRunsEveryTaskOnceWithinTheLimit(t *testing.T) {
	const limit = 3
	tasks := make([]int, 100)
	for i := range tasks {
		tasks[i] = i
	}
	var running, most atomic.Int64
	var mu sync.Mutex
	seen := map[int]int{}
	err := engine.Local(context.Background(), limit, engine.Each(tasks), func(_ context.Context, n int) error {
		now := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		mu.Lock()
		defer mu.Unlock()
		seen[n]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if most.Load() > limit {
		t.Errorf("%d tasks ran at a time, the limit is %d", most.Load(), limit)
	}
	for _, n := range tasks {
		if seen[n] != 1 {
			t.Errorf("task %d ran %d times", n, seen[n])
		}
	}
}

func TestFirstErrorStopsTheRest(t *testing.T) {
	broken := errors.New("broken")
	started := 0
	tasks := func(yield func(int, error) bool) {
		for i := 0; ; i++ {
			started++
			if !yield(i, nil) {
				return
			}
		}
	}
	err := engine.Local(context.Background(), 1, tasks, func(ctx context.Context, n int) error {
		if n == 2 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v, want the task's error", err)
	}
}

func TestErrorOfTheSequenceIsReturned(t *testing.T) {
	broken := errors.New("listing broke off")
	ran := 0
	err := engine.Local(context.Background(), 1, func(yield func(int, error) bool) {
		_ = yield(1, nil) && yield(0, broken)
	}, func(context.Context, int) error { ran++; return nil })
	if !errors.Is(err, broken) {
		t.Fatalf("got %v, want the sequence's error", err)
	}
	if ran != 1 {
		t.Errorf("%d tasks ran, want 1", ran)
	}
}

func TestCancelledParentIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := engine.Local(ctx, 2, engine.Each([]int{1, 2, 3}), func(context.Context, int) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v: tasks that never ran must not count as done", err)
	}
}
