package snapshot

import (
	"context"
	"sync"

	"hbackup"
)

// Fault is a file that a manifest needs and that is not as it must be.
type Fault struct {
	Target Target
	Want   int64 // bytes by the manifest; -1 when it does not say
	Have   int64 // bytes there; -1 when the file is missing
}

// statters is how many files Missing asks for at once.
const statters = 16

// Missing looks for every file of the manifest in a living root directory and
// gives those that are missing or have another size, in the manifest's order. An
// error means that the answer is not known: the manifest is corrupt, or the file
// system did not answer.
func Missing(ctx context.Context, fs FS, root string, m *Manifest) ([]Fault, error) {
	targets, err := Targets(m)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	type question struct {
		n int
		Fault
	}
	questions := make(chan question)
	faults := map[int]Fault{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range statters {
		wg.Go(func() {
			for q := range questions {
				info, err := Locate(ctx, fs, root, q.Target)
				switch {
				case err == nil:
					q.Have = info.Size
				case hbackup.IsKind(err, hbackup.KindIncomplete):
					q.Have = -1
				default:
					cancel(err)
					return
				}
				if q.Have < 0 || q.Want >= 0 && q.Have != q.Want {
					mu.Lock()
					faults[q.n] = q.Fault
					mu.Unlock()
				}
			}
		})
	}
	n := 0
ask:
	for t, size := range targets {
		select {
		case questions <- question{n, Fault{Target: t, Want: size}}:
			n++
		case <-ctx.Done():
			break ask
		}
	}
	close(questions)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var out []Fault
	for i := range n {
		if f, bad := faults[i]; bad {
			out = append(out, f)
		}
	}
	return out, nil
}
