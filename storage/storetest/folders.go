package storetest

import (
	"slices"

	"hbackup/storage"
)

// listFolders has folders beside objects, and folders in folders, whose order is
// that of the names with their slash.
func listFolders(e *env) {
	keys := []storage.Key{"j/a/1", "j/a/2", "j/a/x/3", "j/a-b/1", "j/a.b", "j/a0", "j/b/c/d/e", "j/z", "j-k/1", "j0", "k/1", "top"}
	for _, key := range keys {
		e.put(key, []byte(key))
	}
	slices.Sort(keys)
	for _, prefix := range []string{"", "j/", "j/a", "../"} {
		for _, after := range []storage.Key{"", "j/a/", "j/a/1", "j/a0"} {
			var want []storage.Key
			for _, key := range startingWith(keys, prefix, "") {
				if folder := storage.FolderOf(key, prefix); folder != "" {
					key = folder
				}
				if key > after && !slices.Contains(want, key) {
					want = append(want, key)
				}
			}
			e.lists(prefix, storage.ListOptions{Folders: true, After: after}, want...)
			e.lists(prefix, storage.ListOptions{Folders: true, NamesOnly: true, After: after, Limit: 2}, want[:min(2, len(want))]...)
			e.lists(prefix, storage.ListOptions{NamesOnly: true, After: after}, startingWith(keys, prefix, after)...)
		}
	}
	for _, o := range e.list("j/", storage.ListOptions{Folders: true}) {
		if want := map[storage.Key]int64{"j/a.b": 5, "j/a0": 4, "j/z": 3}[o.Key]; o.Size != want {
			e.Fatalf("%s has %d bytes; want %d", o.Key, o.Size, want)
		}
	}
	for _, o := range e.list("j/", storage.ListOptions{NamesOnly: true}) {
		if o.Size != int64(len(o.Key)) && o.Size != -1 {
			e.Fatalf("%s has %d bytes", o.Key, o.Size)
		}
	}
}
