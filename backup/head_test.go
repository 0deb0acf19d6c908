package backup_test

import (
	"slices"
	"testing"

	"hbackup"
	"hbackup/catalog"
)

// The head of an image says what people want to know of it: the families, the images
// that it was compared with, and under which generation of the lease it was committed,
// which the run's record says as well.
func TestHeadOfAnImage(t *testing.T) {
	w := newWorld(t)
	first, err := w.run("one", w.store)
	if err != nil {
		t.Fatal(err)
	}
	clone := w.clone(t, orders, "orders_clone")
	second, err := w.run("two", w.store, orders, clone)
	if err != nil {
		t.Fatal(err)
	}
	parent := []hbackup.ImageID{first.Tables[0].Image}
	for _, c := range []struct {
		of      catalog.TableRun
		run     catalog.Run
		parents []hbackup.ImageID
	}{{first.Tables[0], first.Run, nil}, {second.Tables[0], second.Run, parent}} {
		h, err := catalog.ReadHeader(t.Context(), w.folder(), c.of.Table, c.of.Image)
		if err != nil {
			t.Fatal(err)
		}
		if h.Schema == nil || len(h.Schema.Families) != 1 || h.Schema.Families[0].Name != "f" {
			t.Errorf("schema %+v", h.Schema)
		}
		if !slices.Equal(h.Parents, c.parents) {
			t.Errorf("parents %v, want %v", h.Parents, c.parents)
		}
		if h.Fence <= 0 || c.run.Fence <= 0 {
			t.Errorf("fence %d, of the run %d", h.Fence, c.run.Fence)
		}
	}
	// The clone's files lie under the table it was made from: that one's newest image,
	// be it the first run's or this one's, was asked.
	h, err := catalog.ReadHeader(t.Context(), w.folder(), clone, second.Tables[1].Image)
	if err != nil || len(h.Parents) != 1 || h.Parents[0] != parent[0] && h.Parents[0] != second.Tables[0].Image {
		t.Errorf("parents of the clone %v, %v", h.Parents, err)
	}
}
