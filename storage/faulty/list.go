package faulty

import (
	"context"
	"iter"

	"hbackup/storage"
)

// List can fail at once or in its middle, or give what is not so.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		f, err := s.next(ctx, opList, storage.Key(prefix))
		path := s.Location().At(storage.Key(prefix))
		if f.name == "lost" {
			err = f.err(opList, path)
		}
		if err != nil {
			yield(storage.Object{}, err)
			return
		}
		list := s.Store.List(ctx, prefix, opts)
		end := -1 // no early end
		breaks := f.name == "half" || f.name == "reset"
		if breaks || f.name == "cut" {
			end = 0
			for range list {
				end++
			}
			end = int(f.part(int64(end)))
		}
		if f.name == "truncate" {
			end = f.count
		}
		for obj, err := range list {
			switch {
			case err == nil && end == 0 && breaks:
				yield(storage.Object{}, f.err(opList, path))
				return
			case err == nil && end == 0:
				return
			case err == nil && f.name == "drop" && s.chance(f.probability):
				continue
			}
			end--
			if !yield(obj, err) || f.name == "repeat" && err == nil && !yield(obj, nil) {
				return
			}
		}
	}
}

func (s *Store) chance(p float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.Float64() < p
}
