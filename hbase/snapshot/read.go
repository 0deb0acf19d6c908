package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"hbackup"
	"hbackup/hbase/rootfs"
)

// FS is what this package needs of a cluster's file system; rootfs.FS has it.
type FS interface {
	URI() string
	Stat(ctx context.Context, path string) (rootfs.Info, error)
	Open(ctx context.Context, path string, offset int64) (io.ReadCloser, rootfs.Info, error)
	ReadDir(ctx context.Context, path string) ([]rootfs.Info, error)
}

// MaxManifestBytes is the longest manifest that is read: some twenty million
// files. HBase's own limit is snapshot.manifest.size.limit, by default 64 MiB.
const MaxManifestBytes = 1 << 30

// A Getter gives the whole content of a snapshot's file by its bare name
// (InfoFile, ManifestFile). A missing file is KindNotFound. The bytes must not be
// changed afterwards.
type Getter func(name string) ([]byte, error)

// ReadDescription reads .snapshotinfo. A snapshot that does not exist is
// KindNotFound, a layout other than version 2 KindUnsupported.
func ReadDescription(get Getter) (Description, error) {
	const op = "read snapshot description"
	data, err := get(InfoFile)
	if err != nil {
		return Description{}, hbackup.E(op, InfoFile, hbackup.KindOther, err)
	}
	if len(data) > maxInfoBytes {
		return Description{}, hbackup.Errorf(op, InfoFile, hbackup.KindCorrupt, "%d bytes are no snapshot description", len(data))
	}
	d, err := decodeDescription(data)
	if err != nil {
		return Description{}, hbackup.E(op, InfoFile, hbackup.KindCorrupt, err)
	}
	if err := d.checkVersion(); err != nil {
		return Description{}, hbackup.E(op, InfoFile, hbackup.KindUnsupported, err).
			WithHint("take the snapshot again with HBase 0.98 or later")
	}
	return d, nil
}

// ReadFrom reads a completed snapshot, from wherever get gets its files. Errors:
// KindNotFound, KindUnsupported (layout), KindCorrupt (bytes that are no
// snapshot, names that could lead out of a directory, parts that disagree).
func ReadFrom(get Getter) (*Manifest, error) {
	d, err := ReadDescription(get)
	if err != nil {
		return nil, err
	}
	const op = "read snapshot manifest"
	data, err := get(ManifestFile)
	if err != nil {
		return nil, hbackup.E(op, ManifestFile, hbackup.KindOther, err)
	}
	m, err := decodeManifest(data)
	if err != nil {
		return nil, hbackup.E(op, ManifestFile, hbackup.KindCorrupt, err)
	}
	if err := m.describe(d, op, ManifestFile); err != nil {
		return nil, err
	}
	return m, nil
}

// describe adds the description, which must speak of the same table.
func (m *Manifest) describe(d Description, op, at string) error {
	m.Description = d
	table := m.Schema.Table
	if table.IsZero() && len(m.Regions) > 0 {
		table = m.Regions[0].Table // not finished yet
	}
	if table.IsZero() || table == d.Table {
		return nil
	}
	return hbackup.Errorf(op, at, hbackup.KindCorrupt, "the manifest is one of table %s, the description of %s", table, d.Table)
}

// Read reads a snapshot below a cluster's root directory. It looks at the
// directory only when there is no data.manifest: then HBase is still taking the
// snapshot and has one file per region so far. Such a manifest has no schema and
// may lack regions. Errors as for ReadFrom.
func Read(ctx context.Context, fs FS, rootDir, name string) (*Manifest, error) {
	if err := ValidateName(name); err != nil {
		return nil, hbackup.E("read snapshot", name, hbackup.KindUsage, err)
	}
	return ReadFromDir(ctx, fs, SnapshotDir(rootDir, name))
}

// ReadFromDir is Read for a snapshot directory at any place, such as
// SnapshotWorkDir or one below hbase.snapshot.working.dir.
func ReadFromDir(ctx context.Context, fs FS, dir string) (*Manifest, error) {
	get := func(file string) ([]byte, error) {
		limit := int64(MaxManifestBytes)
		if file == InfoFile {
			limit = maxInfoBytes
		}
		return readFile(ctx, fs, path.Join(dir, file), limit)
	}
	m, err := ReadFrom(get)
	if err == nil || !hbackup.IsKind(err, hbackup.KindNotFound) {
		return m, at(err, fs.URI()+dir)
	}
	d, err := ReadDescription(get)
	if err != nil {
		return nil, at(err, fs.URI()+dir)
	}
	m, err = readRegions(ctx, fs, dir)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		// HBase replaces the region files by data.manifest and then moves the
		// directory: one of both has just happened.
		if whole, werr := ReadFrom(get); werr == nil {
			return whole, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if err := m.describe(d, "read snapshot", fs.URI()+dir); err != nil {
		return nil, err
	}
	return m, nil
}

// readRegions reads the region-manifest.<encoded> files of a snapshot in progress.
func readRegions(ctx context.Context, fs FS, dir string) (*Manifest, error) {
	const op = "read region manifests"
	list, err := fs.ReadDir(ctx, dir)
	if err != nil {
		return nil, hbackup.E(op, fs.URI()+dir, hbackup.KindOther, err)
	}
	m := &Manifest{}
	for _, info := range list {
		encoded, isRegion := strings.CutPrefix(info.Name, RegionManifestStart)
		if !isRegion {
			continue
		}
		p := path.Join(dir, info.Name)
		data, err := readFile(ctx, fs, p, MaxManifestBytes)
		if err != nil {
			return nil, hbackup.E(op, fs.URI()+p, hbackup.KindOther, err)
		}
		r, err := decodeRegionFile(data)
		if err == nil && string(r.Encoded) != encoded {
			err = fmt.Errorf("the file holds region %s", r.Encoded)
		}
		if err != nil {
			return nil, hbackup.E(op, fs.URI()+p, hbackup.KindCorrupt, err)
		}
		m.Regions = append(m.Regions, r)
	}
	if len(m.Regions) == 0 {
		return nil, hbackup.Errorf(op, fs.URI()+dir, hbackup.KindNotFound, "neither %s nor a region manifest is there", ManifestFile)
	}
	table := m.Regions[0].Table
	for i := range m.Regions {
		if r := &m.Regions[i]; r.Table != table {
			return nil, hbackup.Errorf(op, fs.URI()+dir, hbackup.KindCorrupt, "regions of tables %s and %s in one snapshot", table, r.Table)
		}
	}
	return m, nil
}

func decodeRegionFile(data []byte) (Region, error) {
	wrapped := appendBytesField(make([]byte, 0, len(data)+16), 2, data)
	var d decoder
	if err := d.reserve(wrapped, 2); err != nil {
		return Region{}, err
	}
	return d.region(wrapped[len(wrapped)-len(data):])
}

// readFile reads a small file whole and checks its length.
func readFile(ctx context.Context, fs FS, p string, limit int64) (data []byte, err error) {
	const op = "read snapshot file"
	r, info, err := fs.Open(ctx, p, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := r.Close(); err == nil && cerr != nil {
			data, err = nil, hbackup.E(op, fs.URI()+p, hbackup.KindOther, cerr)
		}
	}()
	if info.Size < 0 || info.Size > limit {
		return nil, hbackup.Errorf(op, fs.URI()+p, hbackup.KindUnsupported, "%d bytes are more than the limit of %d", info.Size, limit)
	}
	data = make([]byte, info.Size)
	if n, err := io.ReadFull(r, data); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%d of %d bytes", n, info.Size)
			return nil, hbackup.E(op, fs.URI()+p, hbackup.KindIncomplete, err)
		}
		return nil, hbackup.E(op, fs.URI()+p, hbackup.KindOther, err)
	}
	return data, nil
}

// at puts the directory before the bare file name in an error of ReadFrom.
func at(err error, dir string) error {
	var e *hbackup.Error
	if errors.As(err, &e) && !strings.Contains(e.Path, "/") {
		e.Path = dir + "/" + e.Path
	}
	return err
}
