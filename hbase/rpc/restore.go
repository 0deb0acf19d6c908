package rpc

import (
	"context"
	"errors"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// HBase has one call, RestoreSnapshot, for two things. It chooses by whether
// the table named in the call exists: if not, it clones; if so, it puts back
// the table that the snapshot was taken of, even when that is another table
// than the one named. So the call is never sent from a single method with a
// free choice of both: Clone makes a table that is not there, Restore takes no
// table name at all.

// CloneRequest asks for a new table made from a snapshot.
type CloneRequest struct {
	Snapshot string
	Target   hbackup.TableName // must not exist

	Nonce Nonce // zero: a new one
	// Sent says that an earlier life of the caller may have sent this request
	// with this nonce. Then a target that exists may be the outcome, and the
	// request is sent once more to learn it, where that can do no harm.
	Sent bool

	RestoreACL       bool   // take the rights in the snapshot over
	StoreFileTracker string // DEFAULT, FILE or MIGRATION; "" keeps the snapshot's. From 2.5 on
}

// Clone makes a table from a snapshot and waits until it serves. That the target
// does not exist is looked at right before the call is sent; somebody who makes
// it in the milliseconds between, while the snapshot's own table is disabled,
// is the one case that HBase leaves open. Errors:
// KindNotFound for the snapshot or the target's name space, KindExists for the
// target, KindIncomplete when the snapshot's files are not all there,
// KindConflict when an earlier request may have made the target but asking
// could rewind the snapshot's own table.
func (c *Client) Clone(ctx context.Context, r CloneRequest) error {
	const op = "clone snapshot"
	if err := checkSnapshot(op, r.Snapshot); err != nil {
		return err
	}
	if err := checkTable(op, r.Target); err != nil {
		return err
	}
	path := r.Snapshot + " to table " + r.Target.String()
	stored, err := c.findSnapshot(ctx, r.Snapshot)
	if err != nil {
		return c.fail(op, path, err)
	}
	if r.StoreFileTracker != "" {
		v, err := c.Version(ctx)
		if err != nil {
			return c.fail(op, path, err)
		}
		if !v.AtLeast(2, 5) {
			return hbackup.Errorf(op, path, hbackup.KindUnsupported, "HBase %s has no store file trackers and would ignore the wish for one", v)
		}
	}
	id, err := c.sendClone(ctx, r, stored)
	if err == nil {
		err = c.finish(ctx, id, c.inState(r.Target, TableEnabled))
	}
	return c.fail(op, path, err)
}

// sendClone looks, right before each send, that the target is not there.
func (c *Client) sendClone(ctx context.Context, r CloneRequest, stored SnapshotInfo) (uint64, error) {
	req := restoreRequest(r.Snapshot, r.Target, r.Nonce, r.RestoreACL)
	if r.StoreFileTracker != "" {
		req.CustomSFT = &r.StoreFileTracker
	}
	sent := r.Sent && !r.Nonce.IsZero()
	var resp hbpb.RestoreSnapshotResponse
	err := c.repeat(ctx, "RestoreSnapshot", callOptions{}, func(ctx context.Context) (func(), error) {
		there, err := c.tableExists(ctx, r.Target)
		if err == nil && there {
			err = c.mayAskAgain(ctx, stored.Table, sent)
		}
		if err != nil {
			return func() {}, err
		}
		master, err := c.findMaster(ctx)
		if err != nil {
			return func() {}, err
		}
		_, err = c.callServer(ctx, master, MasterService, "RestoreSnapshot", req, &resp, nil, callOptions{slow: true})
		sent = sent || mayHaveArrived(err)
		if there && isRefusal(err) {
			err = hbackup.E("the table exists already, and the master does not know this request", "", hbackup.KindExists, err).
				WithHint("look at the table, and drop it to start again")
		}
		return func() { c.forgetMaster(master) }, err
	})
	return resp.GetProcId(), err
}

// mayAskAgain decides about a target that exists. If nothing was sent it is
// somebody's table. If this request was, sending it again gives the same
// procedure, or, when the master has forgotten that, an attempt to restore the
// snapshot's own table: refused as long as that one is not disabled.
func (c *Client) mayAskAgain(ctx context.Context, stored hbackup.TableName, sent bool) error {
	if !sent {
		return hbackup.Errorf("", "", hbackup.KindExists, "the table exists already").
			WithHint("choose another name, or drop the table first")
	}
	switch state, err := c.tableState(ctx, stored); {
	case isRemote(err, "TableNotFoundException"):
		return nil
	case err != nil:
		return err
	case state == TableEnabled || state == TableEnabling:
		return nil
	default:
		return hbackup.Errorf("", "", hbackup.KindConflict,
			"the table exists, perhaps by an earlier request; asking the master could rewind table %s, which is %s", stored, state).
			WithHint("check the table, or drop it and start again")
	}
}

// RestoreRequest asks that a table be put back in place to what a snapshot of
// it says. The table is the snapshot's own; there is no way to name another.
type RestoreRequest struct {
	Snapshot   SnapshotInfo // as listed by the server
	Nonce      Nonce        // zero: a new one
	RestoreACL bool
}

// Restore rewinds a disabled table to a snapshot of itself and waits for the
// end; the table stays disabled. Errors: KindNotFound for snapshot or table,
// KindConflict when the table is not disabled, KindRefused when the snapshot is
// not of the table that the request says.
func (c *Client) Restore(ctx context.Context, r RestoreRequest) error {
	const op = "restore snapshot"
	name, t := r.Snapshot.Name, r.Snapshot.Table
	if err := checkSnapshot(op, name); err != nil {
		return err
	}
	if err := checkTable(op, t); err != nil {
		return err
	}
	path := name + " in place of table " + t.String()
	stored, err := c.findSnapshot(ctx, name)
	if err != nil {
		return c.fail(op, path, err)
	}
	if stored.Table != t {
		return hbackup.Errorf(op, path, hbackup.KindRefused, "the snapshot was taken of table %s", stored.Table)
	}
	req := restoreRequest(name, t, r.Nonce, r.RestoreACL)
	var resp hbpb.RestoreSnapshotResponse
	err = c.repeat(ctx, "RestoreSnapshot", callOptions{}, func(ctx context.Context) (func(), error) {
		state, err := c.tableState(ctx, t)
		if err != nil {
			return func() {}, err
		}
		if state != TableDisabled {
			return func() {}, hbackup.Errorf("", "", hbackup.KindConflict, "the table is %s", state).WithHint("disable it first")
		}
		master, err := c.findMaster(ctx)
		if err != nil {
			return func() {}, err
		}
		_, err = c.callServer(ctx, master, MasterService, "RestoreSnapshot", req, &resp, nil, callOptions{slow: true})
		return func() { c.forgetMaster(master) }, err
	})
	if err == nil {
		// What a forgotten restore has done cannot be seen from outside.
		err = c.finish(ctx, resp.GetProcId(), func(context.Context) (bool, error) { return false, nil })
	}
	return c.fail(op, path, err)
}

func restoreRequest(snapshot string, t hbackup.TableName, nonce Nonce, acl bool) *hbpb.RestoreSnapshotRequest {
	nonce, table := nonce.orNew(), t.String()
	req := &hbpb.RestoreSnapshotRequest{
		Snapshot:   &hbpb.SnapshotDescription{Name: &snapshot, Table: &table},
		NonceGroup: &nonce.Group, Nonce: &nonce.Value,
	}
	if acl {
		req.RestoreACL = &acl
	}
	return req
}

func mayHaveArrived(err error) bool {
	var lost *ConnError
	return errors.As(err, &lost) && lost.sent()
}

// isRefusal reports whether the master took a clone for a restore and refused
// it: the snapshot's table is not disabled, or not there.
func isRefusal(err error) bool {
	var remote *RemoteError
	return errors.As(err, &remote) &&
		(classOf(remote).kind == hbackup.KindConflict || remote.is("TableNotFoundException", "TableExistsException"))
}
