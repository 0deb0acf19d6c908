package backup

import (
	"context"
	"log/slog"

	"hbackup"
	"hbackup/catalog"
)

// witness are the images of one table in one location: what they say of files.
type witness struct {
	lib    library
	table  hbackup.TableName
	refs   []catalog.ImageRef // the oldest first
	older  int                // refs[:older] are older than newest
	newest fileList           // nil when no image can be read
}

// newWitness opens the newest image that can be read. One that is damaged, or of a
// format that is newer than this program, is said and passed over.
func newWitness(ctx context.Context, lib library, t hbackup.TableName, log *slog.Logger) (*witness, error) {
	w := &witness{lib: lib, table: t}
	var err error
	if w.refs, err = lib.images(ctx, t); err != nil {
		return nil, err
	}
	for w.older = len(w.refs); w.older > 0 && w.newest == nil; {
		w.older--
		if w.newest, err = lib.open(ctx, t, w.refs[w.older]); err != nil {
			w.newest = nil
			if err := passOver(err, t, log); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

// passOver says that an image cannot be used. A store that does not answer is
// another matter: what it holds is not to be read or copied again for that.
func passOver(err error, t hbackup.TableName, log *slog.Logger) error {
	if hbackup.Retryable(err) || hbackup.IsKind(err, hbackup.KindInterrupted) {
		return err
	}
	log.Warn("an image cannot be used for comparison", "table", t, "error", err)
	return nil
}

// testimony goes along what several witnesses say of the files that one location
// holds. The first one that knows a file counts.
type testimony struct {
	at      library
	streams []*stream[catalog.File]
	of      []*witness
}

func newTestimony(at library, owner hbackup.TableName, witnesses []*witness) *testimony {
	t := &testimony{at: at}
	for _, w := range witnesses {
		if w.newest != nil {
			t.streams = append(t.streams, filesOf(w.newest.FilesIn(catalog.ArchivePrefix(owner))))
			t.of = append(t.of, w)
		}
	}
	return t
}

func (t *testimony) stop() {
	for _, s := range t.streams {
		s.stop()
	}
}

// err passes over a list that could not be read to its end: what came before is
// good, and files that came after are as if no image named them.
func (t *testimony) err(log *slog.Logger) error {
	for i, s := range t.streams {
		if s.err != nil {
			if err := passOver(s.err, t.of[i].table, log); err != nil {
				return err
			}
		}
	}
	return nil
}

// word is what an image says of a file; no file means that none says anything.
type word struct {
	file *catalog.File
	by   hbackup.TableName // whose image it is
}

// seek gives what is said of the file.
func (t *testimony) seek(n *need) (w word) {
	for i, s := range t.streams {
		if f := s.seek(n); f != nil && w.file == nil && liesAt(t.at, t.of[i].lib, f) {
			w = word{f, t.of[i].table}
		}
	}
	return w
}

// liesAt reports whether a file that an image of the library names lies at the
// place.
func liesAt(at, lib library, f *catalog.File) bool {
	if f.Location == "" {
		return lib == at
	}
	return f.Location == at.id()
}
