package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/prefixed"
	"hbackup/storage/storetest"
)

const (
	casesAtOnce = 8
	caseTime    = 10 * time.Minute // for one case; a short one takes seconds
)

// lasting are the cases that are tried where what they write cannot be deleted:
// those that leave little.
var lasting = []string{"RoundTrip", "ExpectedDigest", "IfAbsent", "IfAbsentRace", "NotFound", "Delete", "Location"}

// suite runs the cases of the conformance suite, each in a folder of its own, and
// adds an item for each topic.
func (t *trial) suite(ctx context.Context) {
	cases := t.cases()
	opts := []storetest.Option{storetest.AnyNesting(), storetest.HeapLimit(-1), storetest.ClockSkew(24 * time.Hour), storetest.PartSize(t.o.PartSize)}
	if !t.o.Full {
		opts = append(opts, storetest.Brief())
	}
	t.o.Expect(len(cases))
	failures := make([][]string, len(cases))
	var group errgroup.Group
	group.SetLimit(casesAtOnce)
	var done sync.Mutex
	for i, c := range cases {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, caseTime)
			defer cancel()
			failures[i] = c.Try(ctx, prefixed.New(t.s, t.prefix+c.Name), opts...)
			done.Lock()
			t.o.Done(1)
			done.Unlock()
			return nil
		})
	}
	group.Wait() // its functions give no errors
	if ctx.Err() != nil {
		return
	}
	t.topics(cases, failures)
}

func (t *trial) cases() []storetest.Case {
	cases := storetest.Cases()
	if _, holds := storage.HolderOf(t.s); holds && !t.lacking {
		cases = append(cases, storetest.HeldCases()...)
	}
	return slices.DeleteFunc(cases, func(c storetest.Case) bool {
		return t.locked && !slices.Contains(lasting, c.Name) || !t.o.Full && !c.Brief
	})
}

// topics adds the outcome, in the order in which the topics first come.
func (t *trial) topics(cases []storetest.Case, failures [][]string) {
	var order []storetest.Topic
	tried := map[storetest.Topic]int{}
	failed := map[storetest.Topic][]string{}
	for i, c := range cases {
		if tried[c.Topic]++; tried[c.Topic] == 1 {
			order = append(order, c.Topic)
		}
		if len(failures[i]) > 0 {
			failed[c.Topic] = append(failed[c.Topic], c.Name+": "+strings.Join(failures[i], "; "))
		}
	}
	for _, topic := range order {
		if what := failed[topic]; len(what) > 0 {
			t.fail(string(topic), hbackup.Errorf("try out", string(t.s.Location()), hbackup.KindRefused, "%s", strings.Join(what, "; ")).
				WithHint("this store does not do what hbackup relies on: choose another one, or another setting of it"))
			continue
		}
		detail := fmt.Sprintf("%d cases", tried[topic])
		if tried[topic] == 1 {
			detail = "1 case"
		}
		if t.locked {
			detail += "; others are left out, as what they write would stay"
		}
		t.ok(string(topic), detail)
		if topic == storetest.OnCreation {
			t.ok("leases", "by create-if-absent alone and the store's clock: the same rule as on every other store")
		}
	}
	if tried[storetest.OnHeld] > 0 {
		return
	}
	why := "the store holds no uploads that nobody sees; only where deleted objects stay are they needed"
	if t.lacking || t.locked {
		why = "they are not tried here"
	}
	t.items = append(t.items, Item{Name: string(storetest.OnHeld), Status: Absent, Detail: why})
}
