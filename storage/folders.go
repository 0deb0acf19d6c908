package storage

import (
	"iter"
	"strings"
)

// FolderOf gives the folder in which a key lies as a listing with Folders shows
// it; "" when the key is directly under the prefix.
func FolderOf(key Key, prefix string) Key {
	if i := strings.IndexByte(string(key[len(prefix):]), '/'); i >= 0 {
		return key[:len(prefix)+i+1]
	}
	return ""
}

// Folders makes a listing with Folders out of one without, for stores that have
// no cheaper way. List is called with options that ask for every key.
func Folders(list func(ListOptions) iter.Seq2[Object, error], prefix string, opts ListOptions) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		left := opts.Limit
		last := opts.After
		for obj, err := range list(ListOptions{After: opts.After, NamesOnly: opts.NamesOnly}) {
			if err != nil {
				yield(Object{}, err)
				return
			}
			if folder := FolderOf(obj.Key, prefix); folder != "" {
				if folder <= last {
					continue
				}
				obj = Object{Key: folder}
			}
			last = obj.Key
			if !yield(obj, nil) {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}
