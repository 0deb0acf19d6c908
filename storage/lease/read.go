package lease

import (
	"context"
	"errors"

	"hbackup"
	"hbackup/storage"
)

// Read gives the newest generation of a lease; found is false when nobody ever
// held it. Whether it is held now is for HeldAt and the store's clock to say.
func Read(ctx context.Context, s storage.Store, name string) (holder Holder, found bool, err error) {
	if err := checkName(s, name); err != nil {
		return Holder{}, false, err
	}
	for range 100 {
		generation, err := newest(ctx, s, name)
		if err != nil || generation == 0 {
			return Holder{}, false, err
		}
		holder, err := readGeneration(ctx, s, name, generation)
		if hbackup.IsKind(err, hbackup.KindNotFound) {
			continue // deleted in between, so there are newer ones
		}
		return holder, err == nil, err
	}
	return Holder{}, false, hbackup.Errorf("read lease", s.Location().At(storage.Key(folder(name))), hbackup.KindUnavailable,
		"its newest generation is in the listing but cannot be read")
}

func newest(ctx context.Context, s storage.Store, name string) (int64, error) {
	var last int64
	for obj, err := range s.List(ctx, folder(name), storage.ListOptions{}) {
		if err != nil {
			return 0, hbackup.E("read lease", s.Location().At(storage.Key(folder(name))), hbackup.KindOther, err)
		}
		if n, ok := generationOf(name, obj.Key); ok {
			last = n
		}
	}
	return last, nil
}

func readGeneration(ctx context.Context, s storage.Store, name string, generation int64) (Holder, error) {
	key := keyOf(name, generation)
	data, _, err := storage.ReadAll(ctx, s, key, maxRecord)
	if err != nil {
		return Holder{}, err
	}
	r, err := decode(data)
	if err != nil {
		return Holder{}, hbackup.E("read lease", s.Location().At(key), hbackup.KindOf(err), errors.Unwrap(err))
	}
	return r.holder(name, generation), nil
}

// checkName refuses names that cannot be a part of a key.
func checkName(s storage.Store, name string) error {
	if err := keyOf(name, 1).Validate(); err != nil || name == "" {
		return hbackup.Errorf("read lease", s.Location().At(storage.Key(folder(name))), hbackup.KindUsage, "%q is no name of a lease", name)
	}
	return nil
}
