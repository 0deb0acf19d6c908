package benchtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"iter"
	"strings"
	"sync"

	"hbackup"
	"hbackup/bench"
	"hbackup/storage"
	"hbackup/storage/mem"
	"hbackup/storage/prefixed"
)

// Mem is a target in memory, the plainest there can be: a call is one request, a
// rename is a copy and a delete, directories are what their files' names say.
type Mem struct {
	store storage.Store
	meter *bench.Meter

	// Spoil, when set, changes what a rename or a completion writes.
	Spoil func(path string, data []byte) []byte
	// Keep makes Delete leave everything.
	Keep bool
	// Hold makes Complete leave the upload open as well.
	Hold bool

	mu   sync.Mutex
	open map[string]upload // by id
}

type upload struct {
	path string
	data []byte
}

var _ bench.Target = (*Mem)(nil)

// NewMem gives a folder of a store in memory.
func NewMem(s *mem.Store, folder string) *Mem {
	m := &Mem{meter: bench.NewMeter(0), open: map[string]upload{}}
	m.store = &counted{prefixed.New(s, folder), m.meter}
	return m
}

func (m *Mem) Store() storage.Store       { return m.store }
func (m *Mem) FS(bench.Protocol) bench.FS { return (*memFS)(m) }
func (m *Mem) Uploads() bench.Uploads     { return (*memUploads)(m) }
func (m *Mem) Meter() *bench.Meter        { return m.meter }
func (m *Mem) Close() error               { return nil }

func (m *Mem) inner() storage.Store { return m.store.(*counted).Store }

// Names lists everything in a directory.
func (m *Mem) Names(ctx context.Context, dir string) ([]string, error) {
	var names []string
	for o, err := range m.inner().List(ctx, dir+"/", storage.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		names = append(names, string(o.Key))
	}
	return names, nil
}

// Clear removes everything.
func (m *Mem) Clear(ctx context.Context) error {
	m.mu.Lock()
	m.open = map[string]upload{}
	m.mu.Unlock()
	return m.remove(ctx, "")
}

func (m *Mem) remove(ctx context.Context, prefix string) error {
	for o, err := range m.inner().List(ctx, prefix, storage.ListOptions{}) {
		if err == nil {
			err = m.inner().Delete(ctx, o.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type memFS Mem

func (f *memFS) Put(ctx context.Context, path string, data []byte) error {
	if err := f.meter.Request(ctx, "put"); err != nil {
		return err
	}
	_, err := storage.PutBytes(ctx, (*Mem)(f).inner(), storage.Key(path), data, false)
	return err
}

func (f *memFS) Create(ctx context.Context, path string, data []byte) error {
	return f.Put(ctx, path, data)
}

func (f *memFS) Save(ctx context.Context, path string, data []byte) error {
	return f.Put(ctx, path, data)
}

func (f *memFS) Load(ctx context.Context, path string) ([]byte, error) {
	if err := f.meter.Request(ctx, "get"); err != nil {
		return nil, err
	}
	b, _, err := storage.ReadAll(ctx, (*Mem)(f).inner(), storage.Key(path), 1<<20)
	return b, err
}

func (f *memFS) Read(ctx context.Context, path string) ([]byte, error) { return f.Load(ctx, path) }

// below gives what is under a path at any depth.
func (f *memFS) below(ctx context.Context, path string) (all []bench.Status, err error) {
	for o, err := range (*Mem)(f).inner().List(ctx, path+"/", storage.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, bench.Status{Path: string(o.Key), Size: o.Size})
	}
	return all, nil
}

func (f *memFS) Status(ctx context.Context, path string) (bench.Status, error) {
	if err := f.meter.Request(ctx, "stat"); err != nil {
		return bench.Status{}, err
	}
	if o, err := (*Mem)(f).inner().Stat(ctx, storage.Key(path)); err == nil {
		return bench.Status{Path: path, Size: o.Size}, nil
	}
	files, err := f.below(ctx, path)
	if err == nil && len(files) == 0 {
		err = hbackup.Errorf("look at", path, hbackup.KindNotFound, "there is nothing")
	}
	return bench.Status{Path: path, Dir: true}, err
}

func (f *memFS) List(ctx context.Context, dir string) ([]bench.Status, error) {
	if err := f.meter.Request(ctx, "list"); err != nil {
		return nil, err
	}
	files, err := f.below(ctx, dir)
	var all []bench.Status
	for _, s := range files {
		name, _, deeper := strings.Cut(strings.TrimPrefix(s.Path, dir+"/"), "/")
		if deeper {
			s = bench.Status{Path: dir + "/" + name, Dir: true}
		}
		if n := len(all); n == 0 || all[n-1].Path != s.Path {
			all = append(all, s)
		}
	}
	return all, err
}

func (f *memFS) Walk(ctx context.Context, dir string) ([]bench.Status, error) {
	if err := f.meter.Request(ctx, "list"); err != nil {
		return nil, err
	}
	return f.below(ctx, dir)
}

func (f *memFS) Mkdirs(context.Context, string) error { return nil }

func (f *memFS) Merge(ctx context.Context, from, to string) error {
	if _, err := f.Status(ctx, to); !hbackup.IsKind(err, hbackup.KindNotFound) {
		return errors.Join(err, hbackup.Errorf("rename to", to, hbackup.KindExists, "it is there already"))
	}
	return f.Rename(ctx, from, to)
}

func (f *memFS) Rename(ctx context.Context, from, to string) error {
	files, err := f.below(ctx, from)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return f.move(ctx, from, to)
	}
	for _, s := range files {
		if err := f.move(ctx, s.Path, to+strings.TrimPrefix(s.Path, from)); err != nil {
			return err
		}
	}
	return nil
}

func (f *memFS) move(ctx context.Context, from, to string) error {
	if err := f.meter.Request(ctx, "copy"); err != nil {
		return err
	}
	data, _, err := storage.ReadAll(ctx, (*Mem)(f).inner(), storage.Key(from), bench.MaxSize)
	if err != nil {
		return err
	}
	f.meter.Copied(int64(len(data)))
	if _, err := storage.PutBytes(ctx, (*Mem)(f).inner(), storage.Key(to), (*Mem)(f).spoilt(to, data), false); err != nil {
		return err
	}
	if err := f.meter.Request(ctx, "delete"); err != nil {
		return err
	}
	return (*Mem)(f).inner().Delete(ctx, storage.Key(from))
}

func (m *Mem) spoilt(path string, data []byte) []byte {
	if m.Spoil == nil {
		return data
	}
	return m.Spoil(path, bytes.Clone(data))
}

func (f *memFS) Delete(ctx context.Context, path string) error {
	if err := f.meter.Request(ctx, "delete"); err != nil || f.Keep {
		return err
	}
	if err := (*Mem)(f).inner().Delete(ctx, storage.Key(path)); err != nil {
		return err
	}
	return (*Mem)(f).remove(ctx, path+"/")
}

type memUploads Mem

func (u *memUploads) Begin(ctx context.Context, path string) (string, error) {
	id := rand.Text()
	u.mu.Lock()
	u.open[id] = upload{path: path}
	u.mu.Unlock()
	return id, u.meter.Request(ctx, "create upload")
}

func (u *memUploads) Part(ctx context.Context, path, id string, data []byte) (string, error) {
	u.mu.Lock()
	u.open[id] = upload{path, data}
	u.mu.Unlock()
	return "tag", u.meter.Request(ctx, "put part")
}

func (u *memUploads) Complete(ctx context.Context, path, id, tag string) error {
	u.mu.Lock()
	up, there := u.open[id]
	if !u.Hold {
		delete(u.open, id)
	}
	u.mu.Unlock()
	if !there || up.path != path || tag != "tag" {
		return hbackup.Errorf("complete", path, hbackup.KindNotFound, "there is no such upload")
	}
	if err := u.meter.Request(ctx, "complete"); err != nil {
		return err
	}
	_, err := storage.PutBytes(ctx, (*Mem)(u).inner(), storage.Key(path), (*Mem)(u).spoilt(path, up.data), false)
	return err
}

func (u *memUploads) Abort(ctx context.Context, _, id string) error {
	u.mu.Lock()
	if !u.Hold {
		delete(u.open, id)
	}
	u.mu.Unlock()
	return u.meter.Request(ctx, "abort")
}

func (u *memUploads) Open(ctx context.Context, dir string) ([]bench.Upload, error) {
	u.mu.Lock()
	var all []bench.Upload
	for id, up := range u.open {
		if dir == "" || strings.HasPrefix(up.path, dir+"/") {
			all = append(all, bench.Upload{Path: up.path, ID: id})
		}
	}
	u.mu.Unlock()
	return all, u.meter.Request(ctx, "list uploads")
}

// counted counts the calls of the product's own committer.
type counted struct {
	storage.Store
	meter *bench.Meter
}

func (c *counted) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	if err := c.meter.Request(ctx, "put"); err != nil {
		return storage.Object{}, err
	}
	c.meter.Moved(opts.Size, 0)
	return c.Store.Put(ctx, key, body, opts)
}

func (c *counted) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	if err := c.meter.Request(ctx, "get"); err != nil {
		return nil, storage.Object{}, err
	}
	return c.Store.Get(ctx, key, r)
}

func (c *counted) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	if err := c.meter.Request(ctx, "stat"); err != nil {
		return storage.Object{}, err
	}
	return c.Store.Stat(ctx, key)
}

func (c *counted) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		if err := c.meter.Request(ctx, "list"); err != nil {
			yield(storage.Object{}, err)
			return
		}
		c.Store.List(ctx, prefix, opts)(yield)
	}
}
