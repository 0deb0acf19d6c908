package main

import (
	"context"
	"fmt"

	"hbackup/e2e/servers"
)

// makeBig bulk-loads large files into one region: 1 KB values that do not compress.
func (b *bench) makeBig(ctx context.Context, table string, files, megabytes int) error {
	if err := b.cluster.CreateTable(ctx, servers.TableSpec{Name: table, Families: servers.Families("f")}); err != nil {
		return err
	}
	const value, overhead = 1024, 61 // per cell, in an HFile without encoding
	rows := int64(megabytes) * 1e6 / (value + overhead)
	for i := range files {
		spec := servers.LoadSpec{Seed: 1, From: int64(i) * rows, Rows: rows, Families: []string{"f"}, ValueBytes: value}
		if _, err := b.cluster.BulkLoad(ctx, table, spec); err != nil {
			return err
		}
	}
	return nil
}

// makeSmall writes rows to a hundred regions and flushes them once: a file of
// 100 KB in each family of each.
func (b *bench) makeSmall(ctx context.Context, table string, families int) error {
	const regions, rowsPerRegion, value = 100, 10, 10_000
	var names []string
	for i := range families {
		names = append(names, fmt.Sprintf("f%d", i))
	}
	if err := b.cluster.CreateTable(ctx, servers.TableSpec{Name: table, SplitKeys: servers.HexSplits(regions), Families: servers.Families(names...)}); err != nil {
		return err
	}
	if _, err := b.cluster.Load(ctx, table, servers.LoadSpec{Seed: 2, Rows: regions * rowsPerRegion, ValueBytes: value, SkipWAL: true}); err != nil {
		return err
	}
	return b.cluster.Flush(ctx, table)
}
