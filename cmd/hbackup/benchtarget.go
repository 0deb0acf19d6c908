package main

import (
	"context"
	"errors"
	"time"

	"hbackup"
	"hbackup/bench"
	"hbackup/bench/gcsfs"
	"hbackup/bench/hdfsfs"
	"hbackup/bench/local"
	"hbackup/bench/s3a"
	"hbackup/config"
	"hbackup/storage"
)

// BenchCommitter measures committers in a folder of its own of the location.
func (w *world) BenchCommitter(ctx context.Context, loc *config.Location, o bench.Options, report func(bench.Protocol, string)) (results []bench.Result, err error) {
	target, err := w.benchTarget(ctx, loc, bench.NewFolder(), o.Latency)
	if err != nil {
		return nil, hbackup.E("open location", string(loc.Name), hbackup.KindOther, err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	w.log.Info("the benchmark works in a folder of its own, which it removes at the end", "folder", target.Store().Location())
	return bench.Run(ctx, target, o, report)
}

// benchTarget opens a folder of the location as the benchmark wants it.
func (w *world) benchTarget(ctx context.Context, loc *config.Location, folder string, latency time.Duration) (bench.Target, error) {
	switch loc.URL.Scheme {
	case storage.SchemeS3:
		return s3a.Open(ctx, s3Config(loc, w.log), folder, latency)
	case storage.SchemeGS:
		return gcsfs.Open(ctx, gcsConfig(loc), folder, latency)
	case storage.SchemeHDFS:
		if len(loc.WebHDFS) > 0 {
			return nil, hbackup.Errorf("bench committer", loc.URL.String(), hbackup.KindUnsupported, "committers are compared over the native protocol only, and the location is reached over WebHDFS")
		}
		return hdfsfs.Open(storage.Place{Scheme: storage.SchemeHDFS, Host: loc.URL.Host, Path: loc.URL.Path}, hdfsConfig(loc, w.log), folder, latency)
	case storage.SchemeFile:
		if latency > 0 {
			return nil, hbackup.Errorf("bench committer", loc.URL.String(), hbackup.KindUsage, "a directory gets no requests that could wait").
				WithHint("leave --latency out")
		}
		return local.Open(storage.Place{Scheme: storage.SchemeFile, Path: loc.URL.Path}, folder)
	}
	return nil, hbackup.Errorf("open location", loc.URL.String(), hbackup.KindUnsupported, "locations of the kind %s:// are not supported", loc.URL.Scheme)
}
