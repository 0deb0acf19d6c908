package bench

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"hbackup"
	"hbackup/engine"
	"hbackup/storage"
)

// verifyPool is how many files are read back at a time.
const verifyPool = 16

// verifyFiles reads every file of the job through the product's own store, and
// looks that the output holds them, the mark of success, and nothing else.
func (j *job) verifyFiles(ctx context.Context, t Target, out string) error {
	want := []string{out + "/" + successFile}
	for i := range j.Files {
		want = append(want, out+"/"+j.name(i))
	}
	if err := verifyNames(ctx, t, out, want); err != nil {
		return err
	}
	return engine.Local(ctx, verifyPool, engine.Each(numbers(j.Files)), func(ctx context.Context, i int) error {
		key := storage.Key(out + "/" + j.name(i))
		got, _, err := storage.ReadAll(ctx, t.Store(), key, j.Size+1)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, j.data(i)) {
			return hbackup.Errorf("verify", t.Store().Location().At(key), hbackup.KindCorrupt, "it does not have the bytes that were written")
		}
		return nil
	})
}

// verifyNames compares all that is in a directory with what should be.
func verifyNames(ctx context.Context, t Target, dir string, want []string) error {
	got, err := t.Names(ctx, dir)
	if err != nil {
		return err
	}
	slices.Sort(got)
	slices.Sort(want)
	missing, extra := difference(want, got), difference(got, want)
	at := string(t.Store().Location()) + "/" + dir
	switch {
	case len(missing) > 0:
		return hbackup.Errorf("verify", at, hbackup.KindIncomplete, "%s missing, such as %s", plural(len(missing), "file is", "files are"), missing[0])
	case len(extra) > 0:
		return hbackup.Errorf("verify", at, hbackup.KindCorrupt, "%s left over, such as %s", plural(len(extra), "file is", "files are"), extra[0])
	}
	return nil
}

// difference gives what is in a and not in b; both are sorted.
func difference(a, b []string) []string {
	var only []string
	for _, s := range a {
		if _, there := slices.BinarySearch(b, s); !there {
			only = append(only, s)
		}
	}
	return only
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
