package restore

import (
	"testing"

	"hbackup"
	"hbackup/hbase/snapshot"
)

// An image orders its files as their paths are ordered, in which "f-1/" comes
// before "f/". Names of families, and of tables that a clone reads from, that
// continue each other with a character below '/' must be found all the same.
func TestNamesThatContinueEachOther(t *testing.T) {
	b := newBuilder(t, ordersTable, "f", "f-1", "f.2", "f 3", "fa")
	b.manifest.Regions = make([]snapshot.Region, 0, 1)
	r := b.region("", "", 1700000000001)
	n := 0
	for _, family := range b.families {
		b.add(r, family, hexName(n), 100+n)
		n++
		for _, q := range []string{"orders-1", "orders.old", "orders2"} {
			from := hbackup.TableName{Namespace: "shop", Qualifier: q}
			b.add(r, family, snapshot.LinkName(from, snapshot.EncodeRegionName(from, nil, 5, 0), hexName(n)), 100+n)
			n++
		}
	}
	w := newWorldOf(t, b)
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.checkDone()
}
