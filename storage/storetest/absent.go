package storetest

import (
	"bytes"
	"fmt"
	"sync"

	"hbackup"
	"hbackup/storage"
)

func ifAbsent(e *env) {
	first, second := content(1, 5000), content(2, 6000)
	put := func(data []byte) error {
		_, err := e.s.Put(e.ctx, "c/key", bytes.NewReader(data), storage.PutOptions{Size: int64(len(data)), IfAbsent: true})
		return err
	}
	if err := put(first); err != nil {
		e.Fatalf("Put if absent of a free key: %v", err)
	}
	e.has("c/key", first)
	e.wantKind("Put if absent of a taken key", put(second), hbackup.KindExists)
	e.wantKind("Put if absent of the same content", put(first), hbackup.KindExists)
	e.has("c/key", first)
	if err := e.s.Delete(e.ctx, "c/key"); err != nil {
		e.Fatalf("Delete: %v", err)
	}
	if err := put(second); err != nil {
		e.Fatalf("Put if absent after the delete: %v", err)
	}
	e.has("c/key", second)
}

func ifAbsentRace(e *env) {
	rounds := 5
	if e.o.brief {
		rounds = 1
	}
	for round := range rounds {
		e.race(storage.Key(fmt.Sprintf("race/%d", round)), 50, func(i int) int64 { return int64(100 + i) })
	}
}

func ifAbsentRaceInParts(e *env) {
	if e.o.partSize == 0 {
		e.Skip("the store does not write in parts")
	}
	e.race("race/parts", 6, func(i int) int64 { return e.o.partSize + int64(i) })
	// Some in one piece, some in parts: both ways obey the same condition.
	e.race("race/mixed", 12, func(i int) int64 { return e.o.partSize*int64(i%2) + 10 + int64(i) })
}

// race lets n writers create one key and checks that one of them won and that
// its bytes are what is there.
func (e *env) race(key storage.Key, n int, size func(i int) int64) {
	e.Helper()
	start := make(chan struct{})
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			_, errs[i] = e.s.Put(e.ctx, key, stream(uint64(i), size(i)), storage.PutOptions{Size: size(i), IfAbsent: true})
		})
	}
	close(start)
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			e.Fatalf("%s: both writer %d and writer %d created it", key, winner, i)
		case err == nil:
			winner = i
		default:
			e.wantKind("Put that lost the race", err, hbackup.KindExists)
		}
	}
	if winner < 0 {
		e.Fatalf("%s: none of %d writers created it", key, n)
	}
	e.has(key, content(uint64(winner), size(winner)))
}
