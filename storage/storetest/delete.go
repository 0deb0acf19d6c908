package storetest

import (
	"fmt"
	"maps"
	"slices"

	"hbackup"
	"hbackup/storage"
)

func deleteOne(e *env) {
	e.put("d/a", content(1, 10))
	e.put("d/b", content(2, 10))
	for _, key := range []storage.Key{"d/a", "d/a", "d/missing", "no/such/folder/key", "d"} {
		if err := e.s.Delete(e.ctx, key); err != nil {
			e.Fatalf("Delete %s: %v", key, err)
		}
		e.absent(key)
	}
	e.has("d/b", content(2, 10))
	e.lists("", storage.ListOptions{}, "d/b")
	e.put("d/a", content(3, 30))
	e.has("d/a", content(3, 30))
}

func deleteBatch(e *env) {
	if failures, err := e.s.DeleteBatch(e.ctx, nil); err != nil || len(failures) > 0 {
		e.Fatalf("DeleteBatch of nothing: %v, %v", failures, err)
	}
	var doomed []storage.Key
	for i := range 30 {
		key := storage.Key(fmt.Sprintf("batch/%d/key with <&> %02d", i%3, i))
		e.put(key, content(uint64(i), 10))
		doomed = append(doomed, key, storage.Key(fmt.Sprintf("batch/missing/%d", i)))
	}
	e.put("batch/kept", content(99, 10))
	e.put("batch/1/key", content(98, 10))
	doomed = append(doomed, doomed[0], doomed[7]) // twice the same
	failures, err := e.s.DeleteBatch(e.ctx, doomed)
	if err != nil || len(failures) > 0 {
		e.Fatalf("DeleteBatch: %v, %v", failures, err)
	}
	e.lists("", storage.ListOptions{}, "batch/kept", "batch/1/key")
	for _, key := range doomed[:4] {
		e.absent(key)
	}
	e.has("batch/kept", content(99, 10))
}

func deleteBatchInvalidKeys(e *env) {
	e.put("batch/a", content(1, 10))
	e.put("batch/b", content(2, 10))
	e.put("batch/kept", content(3, 10))
	invalid := map[storage.Key]bool{"": true, "../batch/kept": true, "batch/": true, "batch//kept": true, "/batch/kept": true}
	keys := []storage.Key{"batch/a"}
	for key := range invalid {
		keys = append(keys, key)
	}
	failures, err := e.s.DeleteBatch(e.ctx, append(keys, "batch/b"))
	if err != nil {
		e.Fatalf("DeleteBatch failed as a whole: %v", err)
	}
	for _, f := range failures {
		if !invalid[f.Key] {
			e.Fatalf("DeleteBatch reports %q: %v", f.Key, f.Err)
		}
		delete(invalid, f.Key)
		if !hbackup.IsKind(f.Err, hbackup.KindUsage) {
			e.Fatalf("DeleteBatch reports %q with kind %q: %v", f.Key, hbackup.KindOf(f.Err), f.Err)
		}
	}
	if len(invalid) > 0 {
		e.Fatalf("DeleteBatch did not report the invalid keys %q", slices.Collect(maps.Keys(invalid)))
	}
	e.lists("", storage.ListOptions{}, "batch/kept")
}
