package backup

import (
	"fmt"
	"testing"

	"hbackup"
	"hbackup/catalog"
)

// bookcase is a location with so many images of a table, of which the oldest names
// the files, and the files.
func bookcase(images, files int, manifest int64) (m *model, needs []need) {
	m = &model{name: "here", objects: map[string]int64{}, albums: map[hbackup.TableName][]*album{}}
	var old []catalog.File
	for i := range files {
		f := fileAt(base, 3*i) // of one region, so in order
		old = append(old, f)
		m.objects[string(f.Key())] = f.Size
		needs = append(needs, needOf(f))
	}
	for i := range images {
		a := &album{ref: catalog.ImageRef{ID: hbackup.ImageID(fmt.Sprintf("%06d", i)), Size: manifest}}
		if i == 0 {
			a.files, a.good = old, len(old)
		}
		m.albums[base] = append(m.albums[base], a)
	}
	return m, needs
}

// Older images are read as long as that costs less than to prove the files without
// them, and a month of daily ones at most.
func TestHowFarPlanningLooksBack(t *testing.T) {
	for _, c := range []struct {
		name     string
		images   int
		files    int
		manifest int64
		cost     int64 // of proving one file
		opens    int
		found    bool
	}{
		{"proving costs nothing", 10, 5, 100, 0, 1, false},
		{"the next one is worth it", 2, 1, 100, requestCost + 100, 2, true},
		{"and is not by a byte", 2, 1, 101, requestCost + 100, 1, false},
		{"three requests for two files", 5, 2, 0, 2 * requestCost, 5, true},
		{"one too few", 6, 2, 0, 2 * requestCost, 5, false},
		{"a month back", 33, 1, 100, 1 << 40, 33, true},
		{"longer ago than that", 34, 1, 100, 1 << 40, 33, false},
		{"large manifests", 33, 10, 100 << 20, 200 << 20, 20, false},
	} {
		m, needs := bookcase(c.images, c.files, c.manifest)
		p := planner{table: base, here: m, log: quiet, proof: func(found) int64 { return c.cost }}
		out, err := p.plan(t.Context(), needs)
		if err != nil || m.opens != c.opens || (len(out.reuse) == c.files) != c.found || len(out.reuse)+len(out.recheck) != c.files {
			t.Errorf("%s: %d images were read, %d files found and %d not, %v", c.name, m.opens, len(out.reuse), len(out.recheck), err)
		}
	}
}

// Before an object of another size is replaced every image is asked.
func TestEveryImageIsAskedBeforeAnObjectIsReplaced(t *testing.T) {
	m, needs := bookcase(50, 1, 100)
	m.objects[needs[0].target.ArchivePath()]++
	p := planner{table: base, here: m, log: quiet, proof: func(found) int64 { return 0 }}
	if out, err := p.plan(t.Context(), needs); err != nil || len(out.replace) != 1 || m.opens != 50 {
		t.Errorf("%+v, %v after %d images", out, err, m.opens)
	}
	needs[0].size++ // the cluster agrees with the object, and the oldest image with neither
	if _, err := p.plan(t.Context(), needs); err != nil {
		t.Errorf("an object that is as the cluster says it is, and that no new image names: %v", err)
	}
	needs[0].size++
	p.witnesses = nil
	if _, err := p.plan(t.Context(), needs); !hbackup.IsKind(err, hbackup.KindConflict) {
		t.Errorf("the oldest image says another size than the cluster: %v", err)
	}
}
