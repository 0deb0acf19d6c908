package hdfs

import (
	"container/heap"

	"hbackup/internal/files"
	"hbackup/storage"
)

// entry is a file or directory, under the name by which it sorts: a directory
// with the slash, because that is what the keys in it go on with.
type entry struct {
	name string
	key  storage.Key
	info files.Info
}

// held brings the entries of one directory from the name node's order into that
// of keys, without having all of them. Two kinds come too early: directories,
// which sort by their name alone there (a before a-b, where a-b comes before
// a/x), and names beyond ASCII, as the name node compares signed bytes. Each
// entry is held until a name of ASCII comes that is greater: whatever comes behind
// that one is greater than it, in both orders.
type held struct{ entries byName }

func (h *held) hold(e entry) { heap.Push(&h.entries, e) }

// before visits what is certain to come before everything that is still to be
// held, as the name node's next name is the given one.
func (h *held) before(next string, visit func(entry) error) error {
	if !isASCII(next) {
		return nil
	}
	for len(h.entries) > 0 && h.entries[0].name < next {
		if err := visit(heap.Pop(&h.entries).(entry)); err != nil {
			return err
		}
	}
	return nil
}

// rest visits what is left at the end.
func (h *held) rest(visit func(entry) error) error {
	for len(h.entries) > 0 {
		if err := visit(heap.Pop(&h.entries).(entry)); err != nil {
			return err
		}
	}
	return nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// byName is a heap, the least name first.
type byName []entry

func (b byName) Len() int           { return len(b) }
func (b byName) Less(i, j int) bool { return b[i].name < b[j].name }
func (b byName) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *byName) Push(x any)        { *b = append(*b, x.(entry)) }
func (b *byName) Pop() any {
	last := (*b)[len(*b)-1]
	(*b)[len(*b)-1] = entry{}
	*b = (*b)[:len(*b)-1]
	return last
}
