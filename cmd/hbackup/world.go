package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/catalog/index"
	"hbackup/catalog/verify"
	"hbackup/check"
	"hbackup/config"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/rpc"
	"hbackup/restore"
	"hbackup/storage"
	"hbackup/storage/prefixed"
	"hbackup/storage/readonly"
)

// world is the real services: clusters and locations of the configuration, each
// opened when it is first asked for and closed at the end.
type world struct {
	*session
	mu     sync.Mutex
	stores map[config.LocationName]storage.Store
	said   map[string]bool // locations that were warned of
	trace  *slog.Logger    // of the stores' calls, once it is open
	index  map[hbackup.ClusterName]*index.Index
	opened []func() error
}

var _ services = (*world)(nil)

func connect(s *session) (services, error) {
	return &world{session: s, stores: map[config.LocationName]storage.Store{}, index: map[hbackup.ClusterName]*index.Index{}}, nil
}

// Close closes what was opened, the last one first.
func (w *world) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for i := len(w.opened) - 1; i >= 0; i-- {
		errs = append(errs, w.opened[i]())
	}
	w.opened = nil
	return errors.Join(errs...)
}

func (w *world) closeLater(f func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = append(w.opened, f)
}

// location opens a location, once.
func (w *world) location(ctx context.Context, loc *config.Location) (storage.Store, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.stores[loc.Name]; s != nil {
		return s, nil
	}
	calls, err := w.calls()
	if err != nil {
		return nil, err
	}
	s, err := openLocation(ctx, loc, w.log)
	if err != nil {
		return nil, hbackup.E("open location", string(loc.Name), hbackup.KindOther, err)
	}
	s = wrapped(s, loc, calls, w.log)
	w.stores[loc.Name] = s
	w.opened = append(w.opened, s.Close)
	return s, nil
}

// place opens the cluster's folder in a location, for reading.
func (w *world) place(ctx context.Context, cl *config.Cluster, loc *config.Location) (catalog.Place, error) {
	s, err := w.location(ctx, loc)
	if err != nil {
		return catalog.Place{Name: string(loc.Name)}, err
	}
	return catalog.Place{Name: string(loc.Name), Store: prefixed.New(readonly.New(s), string(cl.Name))}, nil
}

// master connects to HBase.
func (w *world) master(ctx context.Context, cl *config.Cluster) (*rpc.Client, error) {
	c, err := rpc.Dial(ctx, rpc.Config{
		ZooKeeper:        addresses(cl.Registry.ZooKeeper),
		ZNodeParent:      cl.Registry.ZNode,
		Bootstrap:        addresses(cl.Registry.Masters),
		User:             cl.User,
		ProcedureTimeout: cl.OperationTimeout,
		Log:              w.log,
	})
	if err != nil {
		return nil, hbackup.E("reach cluster", string(cl.Name), hbackup.KindOther, err)
	}
	w.closeLater(c.Close)
	return c, nil
}

// rootFS opens the file system of the cluster and gives the path of its root directory.
func (w *world) rootFS(ctx context.Context, cl *config.Cluster) (rootfs.FS, string, error) {
	fs, root, err := rootfs.Open(ctx, cl.Root.String(), rootfs.Config{NameNodes: addresses(cl.NameNodes), User: cl.User, Log: w.log})
	if err != nil {
		return nil, "", hbackup.E("reach the file system of cluster", string(cl.Name), hbackup.KindOther, err)
	}
	w.closeLater(fs.Close)
	return fs, root, nil
}

func addresses[T ~string](list []T) []string {
	var all []string
	for _, a := range list {
		all = append(all, string(a))
	}
	return all
}

// Backup backs up to the cluster's target.
func (w *world) Backup(ctx context.Context, cl *config.Cluster, req backup.Request, opts backup.Options) (backup.Result, error) {
	target, err := w.location(ctx, w.cfg.Locations[cl.Target])
	if err != nil {
		return backup.Result{}, err
	}
	master, err := w.master(ctx, cl)
	if err != nil {
		return backup.Result{}, err
	}
	fs, root, err := w.rootFS(ctx, cl)
	if err != nil {
		return backup.Result{}, err
	}
	dst := backup.Target{Location: target, Name: string(cl.Target)}
	if req.Selection != nil || opts.Reference == backup.ReferenceAny {
		dst.Earlier = w.earlier(ctx, cl)
	}
	return backup.Run(ctx, req, backup.Source{Master: master, FS: fs, Root: root}, dst, opts)
}

// earlier opens the locations of the cluster's history but the target. One that
// cannot be opened is said and left out.
func (w *world) earlier(ctx context.Context, cl *config.Cluster) []catalog.Place {
	var places []catalog.Place
	for _, loc := range w.cfg.LocationsOf(cl)[1:] {
		p, err := w.readable(ctx, cl, loc)
		if err != nil {
			w.log.Warn("an earlier location cannot be opened", "location", loc.Name, "error", err)
			continue
		}
		p.Store = readonly.New(p.Store)
		places = append(places, p)
	}
	return places
}

// Restore restores to the cluster.
func (w *world) Restore(ctx context.Context, cl *config.Cluster, req restore.Request, opts restore.Options) (restore.Result, error) {
	master, err := w.master(ctx, cl)
	if err != nil {
		return restore.Result{}, err
	}
	fs, root, err := w.rootFS(ctx, cl)
	if err != nil {
		return restore.Result{}, err
	}
	opts.CloneTimeout = cl.OperationTimeout
	return restore.Run(ctx, req, restore.Target{Name: cl.Name, Master: master, FS: fs, Root: root}, opts)
}

// Verify reads images back.
func (w *world) Verify(ctx context.Context, found []catalog.Found, opts verify.Options) (verify.Report, error) {
	return verify.Images(ctx, found, opts)
}

// ValidateTarget tries a location out, through a store of its own: with small
// parts, so that trials of uploads in parts are quick, without repeating what
// fails, and with as many calls at once as a trial needs.
func (w *world) ValidateTarget(ctx context.Context, loc *config.Location, opts check.TargetOptions) (check.TargetReport, error) {
	trial := *loc
	opts.PartSize = smallestParts(loc.URL.Scheme)
	if opts.PartSize > 0 {
		trial.PartSize = config.Size(opts.PartSize)
	}
	trial.RetryFor, trial.Limits.Concurrency = 0, 0
	w.mu.Lock()
	calls, err := w.calls()
	w.mu.Unlock()
	if err != nil {
		return check.TargetReport{}, err
	}
	s, err := openLocation(ctx, &trial, w.log)
	if err != nil {
		return check.TargetReport{}, hbackup.E("open location", string(loc.Name), hbackup.KindOther, err)
	}
	w.closeLater(s.Close)
	return check.Target(ctx, wrapped(s, &trial, calls, w.log), opts)
}

// Check looks at a cluster and its locations. What cannot even be opened is part
// of the result.
func (w *world) Check(ctx context.Context, cl *config.Cluster) []check.Item {
	c := check.Cluster{Name: cl.Name, Elsewhere: w.elsewhere(cl)}
	// An interface that holds a nil pointer is not nil: set it only when there is one.
	if master, err := w.master(ctx, cl); err != nil {
		c.MasterErr = err
	} else {
		c.Master = master
	}
	c.FS, c.Root, c.FSErr = w.rootFS(ctx, cl)
	for i, loc := range w.cfg.LocationsOf(cl) {
		l := check.Location{Name: string(loc.Name)}
		if l.Location, l.Err = w.location(ctx, loc); l.Err == nil {
			l.Place, l.Err = w.place(ctx, cl, loc)
		}
		if i == 0 {
			c.Target = l
		} else {
			c.History = append(c.History, l)
		}
	}
	return check.Run(ctx, c)
}
