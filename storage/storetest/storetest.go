// Package storetest holds the conformance suite of the storage contract. Every
// kind of store passes it, wrappers included, and an operator can be given it
// to try a store that nobody here has seen.
//
//	func TestContract(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storage.Store { return open(t) },
//			storetest.PartSize(8<<20))
//	}
package storetest

import (
	"context"
	"testing"
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
	noNesting    bool
	folderMarker func(t *testing.T, s storage.Store, name string)
	except       map[string]string
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
func NoNesting() Option { return func(o *options) { o.noNesting = true } }

// FolderMarker gives the suite a way to make an object whose name ends in '/',
// which the contract itself does not allow. Name is relative to the location.
func FolderMarker(put func(t *testing.T, s storage.Store, name string)) Option {
	return func(o *options) { o.folderMarker = put }
}

// Except leaves out one case, by its name, and says why.
func Except(name, reason string) Option { return func(o *options) { o.except[name] = reason } }

// Run checks that the stores that open gives keep the contract of package
// storage. Open is called once for each case and must give an empty location.
// The suite closes the store.
func Run(t *testing.T, open func(t *testing.T) storage.Store, opts ...Option) {
	t.Helper()
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
	for name := range o.except {
		if !isCase(name) {
			t.Fatalf("storetest.Except names the case %q, which does not exist", name)
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if reason, left := o.except[c.name]; left {
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

// testCase is one promise of the contract.
type testCase struct {
	name string
	run  func(*env)
}

var cases = []testCase{
	{"RoundTrip", roundTrip},
	{"Sizes", sizes},
	{"OddReaders", oddReaders},
	{"Overwrite", overwrite},
	{"OverwriteWhileRead", overwriteWhileRead},
	{"ExpectedDigest", expectedDigest},
	{"BodyOfWrongSize", bodyOfWrongSize},
	{"BodyThatFails", bodyThatFails},
	{"NothingVisibleDuringPut", nothingVisibleDuringPut},
	{"IfAbsent", ifAbsent},
	{"IfAbsentRace", ifAbsentRace},
	{"IfAbsentRaceInParts", ifAbsentRaceInParts},
	{"Ranges", ranges},
	{"RangesThatCannotBe", rangesThatCannotBe},
	{"CloseEarly", closeEarly},
	{"DeleteWhileRead", deleteWhileRead},
	{"NotFound", notFound},
	{"Delete", deleteOne},
	{"DeleteBatch", deleteBatch},
	{"DeleteBatchInvalidKeys", deleteBatchInvalidKeys},
	{"OddKeys", oddKeys},
	{"InvalidKeys", invalidKeys},
	{"KeyBelowKey", keyBelowKey},
	{"FolderIsNoObject", folderIsNoObject},
	{"FolderMarkers", folderMarkers},
	{"ListEmpty", listEmpty},
	{"ListOrder", listOrder},
	{"ListPrefixIsAString", listPrefixIsAString},
	{"ListMany", listMany},
	{"ListStopsEarly", listStopsEarly},
	{"ListAfterChange", listAfterChange},
	{"CancelledBeforeStart", cancelledBeforeStart},
	{"CancelledDuringPut", cancelledDuringPut},
	{"CancelledDuringRead", cancelledDuringRead},
	{"CancelledDuringList", cancelledDuringList},
	{"ManyWriters", manyWriters},
	{"LargeObject", largeObject},
	{"ServerTime", serverTime},
	{"Location", location},
}

func isCase(name string) bool {
	for _, c := range cases {
		if c.name == name {
			return true
		}
	}
	return false
}
