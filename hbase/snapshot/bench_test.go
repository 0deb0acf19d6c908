package snapshot

import (
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"hbackup"
)

// syntheticManifest makes data.manifest of a table with the given numbers of
// regions and of files in each, named as HBase names them; linked makes them all
// links, as in a fresh clone.
func syntheticManifest(tb testing.TB, regions, files int, linked bool) []byte {
	table := hbackup.TableName{Namespace: "default", Qualifier: "events"}
	source := hbackup.TableName{Namespace: "prod", Qualifier: "events_source"}
	name := appendStringField(appendStringField(nil, 1, "default"), 2, "events")
	schema := appendBytesField(nil, 1, name)
	schema = appendBytesField(schema, 3, appendStringField(nil, 1, "d"))
	out := appendBytesField(nil, 1, schema)
	var digits [32]byte
	n := uint64(0)
	fresh := func() string {
		for i := range digits {
			n = n*6364136223846793005 + 1442695040888963407
			digits[i] = "0123456789abcdef"[n>>60]
		}
		return string(digits[:])
	}
	for i := range regions {
		key := []byte{byte(i >> 16), byte(i >> 8), byte(i), 'k', 'e', 'y'}
		r := Region{Table: table, RawInfo: EncodeRegionInfo(table, key, key, 1700000000000)}
		ff := FamilyFiles{Family: "d"}
		from := hbackup.EncodedRegion(fresh())
		for range files {
			file := fresh()
			if linked {
				file = LinkName(source, from, file)
			}
			ff.Files = append(ff.Files, StoreFile{Name: file, Size: int64(n >> 30)})
		}
		r.Families = []FamilyFiles{ff}
		out = appendHead(out, 2, r.encodedSize())
		out = r.append(out)
	}
	return out
}

func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPlanMillionFiles decodes a manifest of a million files in 100,000
// regions and lists its targets. The target is one CPU second and 200 MiB.
// HBase itself needs 5 to 8 seconds and 2.5 GB.
func BenchmarkPlanMillionFiles(b *testing.B) {
	for name, linked := range map[string]bool{"plain": false, "links": true} {
		b.Run(name, func(b *testing.B) {
			raw := syntheticManifest(b, 100_000, 10, linked)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			before := cpuTime(b)
			var peak uint64
			for b.Loop() {
				debug.FreeOSMemory()
				m, err := DecodeManifest(raw)
				if err != nil {
					b.Fatal(err)
				}
				targets, err := Targets(m)
				if err != nil {
					b.Fatal(err)
				}
				n, bytes := 0, int64(0)
				for _, size := range targets {
					n++
					bytes += size
				}
				if n != 1_000_000 || bytes <= 0 {
					b.Fatalf("%d targets of %d bytes", n, bytes)
				}
				var mem runtime.MemStats
				runtime.ReadMemStats(&mem)
				peak = max(peak, mem.HeapInuse)
				runtime.KeepAlive(m)
			}
			b.ReportMetric((cpuTime(b)-before).Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(peak)/(1<<20), "heap-MiB")
			b.ReportMetric(float64(len(raw))/(1<<20), "manifest-MiB")
		})
	}
}
