package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"hbackup"
	"hbackup/storage"
)

func cancelledBeforeStart(e *env) {
	data := content(1, 100)
	e.put("c/there", data)
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	_, err := e.s.Put(ctx, "c/new", bytes.NewReader(data), storage.PutOptions{Size: 100})
	e.wantKind("Put", err, hbackup.KindInterrupted)
	_, err = e.s.Put(ctx, "c/new", bytes.NewReader(data), storage.PutOptions{Size: 100, IfAbsent: true})
	e.wantKind("Put if absent", err, hbackup.KindInterrupted)
	_, err = e.s.Put(ctx, "c/new", bytes.NewReader(nil), storage.PutOptions{})
	e.wantKind("Put of nothing", err, hbackup.KindInterrupted)
	_, _, err = e.s.Get(ctx, "c/there", storage.Range{})
	e.wantKind("Get", err, hbackup.KindInterrupted)
	_, err = e.s.Stat(ctx, "c/there")
	e.wantKind("Stat", err, hbackup.KindInterrupted)
	e.wantKind("Delete", e.s.Delete(ctx, "c/there"), hbackup.KindInterrupted)
	failures, err := e.s.DeleteBatch(ctx, []storage.Key{"c/there"})
	if err == nil && len(failures) == 1 {
		err = failures[0].Err
	}
	e.wantKind("DeleteBatch", err, hbackup.KindInterrupted)
	_, err = e.s.ServerTime(ctx)
	e.wantKind("ServerTime", err, hbackup.KindInterrupted)
	e.has("c/there", data)
	e.absent("c/new")

	late, cancel := context.WithTimeout(e.ctx, 0)
	defer cancel()
	_, err = e.s.Stat(late, "c/there")
	e.wantKind("Stat after the deadline", err, hbackup.KindTimeout)
}

func cancelledDuringPut(e *env) {
	for _, n := range e.trialSizes() {
		if n < 2 {
			continue
		}
		key := storage.Key(fmt.Sprintf("c/%d", n))
		taken := key + "-taken"
		data := content(9, n)
		e.put(taken, data[:1])
		for _, k := range []storage.Key{key, taken} {
			for _, at := range []int64{0, n / 2, n - 1} {
				ctx, cancel := context.WithCancel(e.ctx)
				body := io.MultiReader(bytes.NewReader(data[:at]), doing(cancel), bytes.NewReader(data[at:]))
				_, err := e.s.Put(ctx, k, body, storage.PutOptions{Size: n})
				cancel()
				e.wantKind(fmt.Sprintf("Put of %d bytes that was cancelled at %d", n, at), err, hbackup.KindInterrupted)
			}
		}
		e.absent(key)
		e.has(taken, data[:1])
		e.put(key, data)
		e.has(key, data)
	}
}

func cancelledDuringRead(e *env) {
	data := content(9, 8<<20)
	e.put("c/key", data)
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	body, _, err := e.s.Get(ctx, "c/key", storage.Range{})
	if err != nil {
		e.Fatalf("Get: %v", err)
	}
	defer body.Close()
	head := make([]byte, 1000)
	if _, err := io.ReadFull(body, head); err != nil {
		e.Fatalf("read: %v", err)
	}
	cancel()
	n, err := io.Copy(io.Discard, body)
	e.wantKind(fmt.Sprintf("a read after the cancel, that gave %d bytes more,", n), err, hbackup.KindInterrupted)
	if !errors.Is(err, context.Canceled) {
		e.Fatalf("the read's error does not wrap context.Canceled: %v", err)
	}
}

func cancelledDuringList(e *env) {
	for i := range 5 {
		e.put(storage.Key(fmt.Sprintf("c/%d", i)), nil)
	}
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	var errs []error
	objects := 0
	for _, err := range e.s.List(ctx, "c/", storage.ListOptions{}) {
		if err != nil {
			errs = append(errs, err)
		} else {
			objects++
		}
	}
	if len(errs) != 1 || objects > 0 {
		e.Fatalf("List with a cancelled context gave %d objects and the errors %v; want one error", objects, errs)
	}
	e.wantKind("List", errs[0], hbackup.KindInterrupted)
}
