package backup

import (
	"context"
	"iter"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
)

// library is what planning asks of one location: what lies there, and what its
// committed images say of it. All sequences are in the order of the keys.
type library interface {
	// id is that of the location, which files in other locations are named by.
	id() string
	// stored lists the objects under a table's folder.
	stored(ctx context.Context, owner hbackup.TableName) iter.Seq2[storage.Object, error]
	// images lists a table's committed images, the oldest first.
	images(ctx context.Context, t hbackup.TableName) ([]catalog.ImageRef, error)
	// open opens the list of files of an image.
	open(ctx context.Context, t hbackup.TableName, ref catalog.ImageRef) (fileList, error)
}

// fileList is the list of files of an image; catalog.ImageReader has it.
type fileList interface {
	// FilesIn yields the files whose keys begin with the prefix. An error is the
	// last element; what came before it is good.
	FilesIn(prefix string) iter.Seq2[catalog.File, error]
}

// shelf is the library that is read from storage alone. Libraries are told apart by
// their identity, so one place has one.
type shelf struct {
	location string // its id
	store    storage.Store
}

func (s *shelf) id() string { return s.location }

func (s *shelf) stored(ctx context.Context, owner hbackup.TableName) iter.Seq2[storage.Object, error] {
	return s.store.List(ctx, catalog.ArchivePrefix(owner), storage.ListOptions{})
}

func (s *shelf) images(ctx context.Context, t hbackup.TableName) ([]catalog.ImageRef, error) {
	return catalog.ImageRefs(ctx, s.store, t)
}

func (s *shelf) open(ctx context.Context, t hbackup.TableName, ref catalog.ImageRef) (fileList, error) {
	r, err := catalog.OpenStored(ctx, s.store, t, ref)
	if err != nil {
		return nil, err // and not a nil pointer
	}
	return r, nil
}
