package rpc

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// SnapshotInfo is a completed snapshot as the server lists it.
type SnapshotInfo struct {
	Name    string
	Table   hbackup.TableName // the table it was taken of, kept in the snapshot
	Created time.Time         // the server's clock
	Type    string            // FLUSH, SKIPFLUSH, DISABLED
	TTL     time.Duration     // 0: for ever
	Owner   string
}

// SnapshotRequest asks for a snapshot of one table.
type SnapshotRequest struct {
	Name      string // unique; the server refuses a second one of the name
	Table     hbackup.TableName
	TTL       time.Duration // the server deletes the snapshot after that; 0: never
	SkipFlush bool          // leave out what is only in memory
	Nonce     Nonce         // zero: a new one
	Attempts  int           // how often to try when the snapshot fails, for instance because a region split; default 3
}

// Snapshot takes a snapshot and waits until it is complete. While another
// snapshot of the table runs it waits, for at most Config.BusyFor. Errors:
// KindNotFound for the table, KindExists for the name, KindBusy, KindDenied.
//
// Up to 2.5 HBase knows no nonce here: a caller that repeats a call of an
// earlier life gets KindExists when that one succeeded.
func (c *Client) Snapshot(ctx context.Context, r SnapshotRequest) error {
	const op = "take snapshot"
	if err := r.validate(op); err != nil {
		return err
	}
	path := r.Name + " of " + r.Table.String()
	if r.Attempts <= 0 {
		r.Attempts = 3
	}
	kind := hbpb.SnapshotDescription_FLUSH
	if r.SkipFlush {
		kind = hbpb.SnapshotDescription_SKIPFLUSH
	}
	// The server's clock and layout version are wanted: a version sent makes
	// the snapshot fail, a creation time sent is kept.
	snapshot := &hbpb.SnapshotDescription{
		Name:  &r.Name,
		Table: proto.String(r.Table.String()),
		Type:  &kind,
		Ttl:   proto.Int64(int64(r.TTL / time.Second)),
	}
	nonce, busyUntil := r.Nonce.orNew(), time.Now().Add(c.cfg.BusyFor)
	failed := 0
	for n := 0; ; n++ {
		err := c.takeSnapshot(ctx, snapshot, nonce.attempt(n))
		if err == nil {
			return nil
		}
		err = c.fail(op, path, err)
		pause := c.wait.pause(n)
		switch {
		case ctx.Err() != nil:
			return err
		case hbackup.IsKind(err, hbackup.KindBusy) && time.Now().Add(pause).Before(busyUntil):
		case failedUnderway(err) && failed+1 < r.Attempts:
			failed++
		default:
			return err
		}
		c.cfg.Log.Info("snapshot tried again", "snapshot", r.Name, "table", r.Table.String(), "pause", pause, "error", err)
		if sleep(ctx, pause) != nil {
			return c.fail(op, path, interrupted(ctx, err))
		}
	}
}

func (r SnapshotRequest) validate(op string) error {
	if err := checkSnapshot(op, r.Name); err != nil {
		return err
	}
	if err := checkTable(op, r.Table); err != nil {
		return err
	}
	if r.Table == metaTable {
		return hbackup.Errorf(op, r.Table.String(), hbackup.KindRefused, "HBase accepts a snapshot of this table and then fails")
	}
	if r.TTL < 0 || r.TTL%time.Second != 0 {
		return hbackup.Errorf(op, r.Name, hbackup.KindUsage, "the time to live %s is not a whole number of seconds", r.TTL)
	}
	return nil
}

// snapshotFailed is a snapshot that was started and then failed or was lost.
type snapshotFailed struct{ error }

func (s snapshotFailed) Unwrap() error { return s.error }

func failedUnderway(err error) bool {
	var f snapshotFailed
	return errors.As(err, &f) && !hbackup.IsKind(err, hbackup.KindNotFound, hbackup.KindDenied, hbackup.KindTimeout, hbackup.KindInterrupted)
}

// takeSnapshot makes one try. From 2.6 on the nonce makes it a procedure, and
// the answer names it; otherwise the servers coordinate through ZooKeeper, and
// must be asked whether it is done: that also ends their own bookkeeping.
func (c *Client) takeSnapshot(ctx context.Context, snapshot *hbpb.SnapshotDescription, nonce Nonce) error {
	req := &hbpb.SnapshotRequest{Snapshot: snapshot, NonceGroup: &nonce.Group, Nonce: &nonce.Value}
	var resp hbpb.SnapshotResponse
	var seen bool
	err := c.callMaster(ctx, "Snapshot", req, &resp, callOptions{slow: true, seen: &seen})
	switch {
	case err == nil && resp.GetProcId() != 0:
		err := c.finish(ctx, uint64(resp.GetProcId()), func(ctx context.Context) (bool, error) {
			_, err := c.findSnapshot(ctx, snapshot.GetName())
			return err == nil, unlessNotFound(err)
		})
		var ended *ProcedureError
		if errors.As(err, &ended) {
			return snapshotFailed{err}
		}
		return err
	case err == nil:
		return c.awaitSnapshot(ctx, snapshot)
	case seen && isRemote(err, "SnapshotExistsException", "SnapshotCreationException"):
		// An earlier send of this call was lost but may have arrived: then the
		// refusal is about our own snapshot.
		if _, pollErr := c.snapshotDone(ctx, snapshot); pollErr != nil {
			return err
		}
		return c.awaitSnapshot(ctx, snapshot)
	}
	return err
}

// awaitSnapshot polls a snapshot that runs through ZooKeeper. While it runs the
// server finds it by its table, afterwards by its name.
func (c *Client) awaitSnapshot(ctx context.Context, snapshot *hbpb.SnapshotDescription) error {
	start := time.Now()
	for n := 0; ; n++ {
		done, err := c.snapshotDone(ctx, snapshot)
		var remote *RemoteError
		switch {
		case done:
			return nil
		case isRemote(err, "UnknownSnapshotException"):
			return snapshotFailed{hbackup.E("", "", hbackup.KindUnavailable, err).
				WithHint("the master has lost the snapshot, perhaps by a fail-over")}
		case errors.As(err, &remote):
			return snapshotFailed{err}
		case err != nil:
			return err
		}
		if waited := time.Since(start); waited > c.cfg.ProcedureTimeout {
			return hbackup.Errorf("", "", hbackup.KindTimeout, "the snapshot still runs after %s", hbackup.FormatDuration(waited))
		}
		if err := sleep(ctx, procedureBackoff.pause(n)); err != nil {
			return err
		}
	}
}

func (c *Client) snapshotDone(ctx context.Context, snapshot *hbpb.SnapshotDescription) (bool, error) {
	var resp hbpb.IsSnapshotDoneResponse
	err := c.callMaster(ctx, "IsSnapshotDone", &hbpb.IsSnapshotDoneRequest{Snapshot: snapshot}, &resp, callOptions{})
	return err == nil && resp.GetDone(), err
}

// Snapshots lists the completed snapshots by name. With access control only
// those that the user may see are in it.
func (c *Client) Snapshots(ctx context.Context) ([]SnapshotInfo, error) {
	found, err := c.snapshots(ctx)
	return found, c.fail("list snapshots", "", err)
}

func (c *Client) snapshots(ctx context.Context) ([]SnapshotInfo, error) {
	var resp hbpb.GetCompletedSnapshotsResponse
	if err := c.callMaster(ctx, "GetCompletedSnapshots", &hbpb.GetCompletedSnapshotsRequest{}, &resp, callOptions{}); err != nil {
		return nil, err
	}
	out := make([]SnapshotInfo, 0, len(resp.Snapshots))
	for _, s := range resp.Snapshots {
		// A table name that breaks the rules is shown as it is.
		table, _ := hbackup.ParseTableName(s.GetTable())
		info := SnapshotInfo{
			Name:    s.GetName(),
			Table:   table,
			Created: hbackup.FromMillis(s.GetCreationTime()),
			Type:    s.GetType().String(),
			Owner:   s.GetOwner(),
		}
		if ttl := s.GetTtl(); ttl > 0 && ttl <= int64(1<<63-1)/int64(time.Second) {
			info.TTL = time.Duration(ttl) * time.Second
		}
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b SnapshotInfo) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// FindSnapshot gives one completed snapshot. Errors: KindNotFound.
func (c *Client) FindSnapshot(ctx context.Context, name string) (SnapshotInfo, error) {
	const op = "look for snapshot"
	if err := checkSnapshot(op, name); err != nil {
		return SnapshotInfo{}, err
	}
	s, err := c.findSnapshot(ctx, name)
	return s, c.fail(op, name, err)
}

func (c *Client) findSnapshot(ctx context.Context, name string) (SnapshotInfo, error) {
	all, err := c.snapshots(ctx)
	if err != nil {
		return SnapshotInfo{}, err
	}
	i := slices.IndexFunc(all, func(s SnapshotInfo) bool { return s.Name == name })
	if i < 0 {
		return SnapshotInfo{}, hbackup.Errorf("", "", hbackup.KindNotFound, "no such snapshot")
	}
	return all[i], nil
}

// DeleteSnapshot removes a snapshot; one that is not there is no error.
func (c *Client) DeleteSnapshot(ctx context.Context, name string) error {
	const op = "delete snapshot"
	if err := checkSnapshot(op, name); err != nil {
		return err
	}
	req := &hbpb.DeleteSnapshotRequest{Snapshot: &hbpb.SnapshotDescription{Name: &name}}
	err := c.callMaster(ctx, "DeleteSnapshot", req, &hbpb.DeleteSnapshotResponse{}, callOptions{slow: true})
	if isRemote(err, "SnapshotDoesNotExistException") {
		return nil
	}
	return c.fail(op, name, err)
}

func unlessNotFound(err error) error {
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil
	}
	return err
}
