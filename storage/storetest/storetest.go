// Package storetest holds the conformance suite of the storage contract. Every
// kind of store passes it, wrappers included:
//
//	func TestContract(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storage.Store { return open(t) },
//			storetest.PartSize(8<<20))
//	}
//
// The same cases run outside of go test, one by one (Case.Try), so that an
// operator can try a store that nobody here has seen.
package storetest

import (
	"context"
	"time"

	"hbackup/storage"
)

// options are what a store says of itself to the suite.
type options struct {
	partSize     int64
	keys         int
	largeSize    int64
	heapLimit    int64
	clockSkew    time.Duration
	nesting      nesting
	folderMarker func(ctx context.Context, s storage.Store, name string) error
	except       map[string]string
	brief        bool
}

// nesting says whether there may be a key below another key.
type nesting int

const (
	nestingMustWork nesting = iota
	nestingRefused
	nestingEither // refused or done, but whole
)

func defaults(opts []Option) options {
	o := options{
		keys:      2500,
		largeSize: 64 << 20,
		heapLimit: 40 << 20,
		clockSkew: time.Minute,
		except:    map[string]string{},
	}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Option says what a store cannot do, or what the suite should know of it.
type Option func(*options)

// PartSize gives the size from which the store sends an object in parts, so
// that objects around that size and around its double are tried.
func PartSize(bytes int64) Option { return func(o *options) { o.partSize = bytes } }

// Keys sets how many objects are put under one prefix; without it 2,500, which
// is more than two pages of every store that is known.
func Keys(n int) Option { return func(o *options) { o.keys = n } }

// LargeSize sets the size of the largest object; without it 64 MiB.
func LargeSize(bytes int64) Option { return func(o *options) { o.largeSize = bytes } }

// HeapLimit sets by how many bytes the heap may grow while the largest object
// is written and read; without it 40 MiB. A negative limit switches the check
// off, for stores that keep their objects in this process.
func HeapLimit(bytes int64) Option { return func(o *options) { o.heapLimit = bytes } }

// ClockSkew sets how far the store's clock may be from this machine's; without
// it one minute.
func ClockSkew(d time.Duration) Option { return func(o *options) { o.clockSkew = d } }

// NoNesting says that the store refuses, with KindConflict, a key that lies
// below another key or that has other keys below it, as a file system must.
func NoNesting() Option { return func(o *options) { o.nesting = nestingRefused } }

// AnyNesting is for a store of which that is not known.
func AnyNesting() Option { return func(o *options) { o.nesting = nestingEither } }

// Brief lets the cases try fewer sizes and fewer keys, still beyond one part and
// one page: for a store that is far away.
func Brief() Option {
	return func(o *options) { o.brief, o.keys = true, 1100 }
}

// FolderMarker gives the suite a way to make an object whose name ends in '/',
// which the contract itself does not allow. Name is relative to the location.
func FolderMarker(put func(ctx context.Context, s storage.Store, name string) error) Option {
	return func(o *options) { o.folderMarker = put }
}

// Except leaves out one case, by its name, and says why.
func Except(name, reason string) Option { return func(o *options) { o.except[name] = reason } }

// T is what a case speaks to: *testing.T, or the one that Try makes.
type T interface {
	Context() context.Context
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skip(args ...any)
	Failed() bool
	FailNow()
}

// runner is a T that runs others of its type by name, as *testing.T does.
type runner[R any] interface {
	T
	Run(name string, f func(R)) bool
}

// Run checks that the stores that open gives keep the contract of package
// storage. Open is called once for each case and must give an empty location.
// The suite closes the store.
func Run[R runner[R]](t R, open func(t R) storage.Store, opts ...Option) {
	t.Helper()
	o := defaults(opts)
	for name := range o.except {
		if !isCase(name) {
			t.Fatalf("storetest.Except names the case %q, which does not exist", name)
		}
	}
	for _, c := range cases {
		t.Run(c.Name, func(t R) {
			if reason, left := o.except[c.Name]; left {
				t.Skip(reason)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			s := open(t)
			defer func() {
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			c.run(&env{T: t, ctx: ctx, s: s, o: o})
		})
	}
}
