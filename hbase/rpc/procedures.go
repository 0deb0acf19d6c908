package rpc

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// Nonce makes a repeated call the same procedure: the master remembers it for
// some minutes after the procedure has ended, also over a fail-over. The zero
// value means "make a new one for this call". A caller that wants to repeat a
// call after a crash makes one with NewNonce and writes it down before the call.
type Nonce struct {
	Group uint64 `json:"group"`
	Value uint64 `json:"value"`
}

// NewNonce makes a random nonce.
func NewNonce() Nonce {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	// Neither half is 0, which means "no nonce" on the wire.
	return Nonce{binary.BigEndian.Uint64(b[:]) | 1, binary.BigEndian.Uint64(b[8:]) | 1}
}

// IsZero reports whether no nonce is set.
func (n Nonce) IsZero() bool { return n == Nonce{} }

func (n Nonce) orNew() Nonce {
	if n.IsZero() {
		return NewNonce()
	}
	return n
}

// attempt gives the nonce of the i-th try of the same job: a failed procedure
// keeps answering under its own nonce, so another try needs another one, and a
// job that is run again must come to the same ones.
func (n Nonce) attempt(i int) Nonce {
	n.Value += uint64(i) << 1
	return n
}

// ProcedureError is a procedure that the master ended with an exception.
// "Finished" alone is no success.
type ProcedureError struct {
	ID     uint64
	Remote *RemoteError
}

func (e *ProcedureError) Error() string { return fmt.Sprintf("procedure %d: %v", e.ID, e.Remote) }
func (e *ProcedureError) Unwrap() error { return e.Remote }

// ProcedureUnknownError is a procedure that the master does not know (any
// more). It says nothing about success: the real state must be looked at.
type ProcedureUnknownError struct{ ID uint64 }

func (e *ProcedureUnknownError) Error() string {
	return fmt.Sprintf("the master does not know procedure %d any more", e.ID)
}

// ProcedureRunningError is a procedure that did not end inside the time for it.
type ProcedureRunningError struct {
	ID     uint64
	Waited time.Duration
}

func (e *ProcedureRunningError) Error() string {
	return fmt.Sprintf("procedure %d still runs after %s", e.ID, hbackup.FormatDuration(e.Waited))
}

// WaitProcedure waits until the procedure has ended. The causes of its errors:
// *ProcedureError, *ProcedureUnknownError, *ProcedureRunningError.
func (c *Client) WaitProcedure(ctx context.Context, id uint64) error {
	return c.fail("wait for procedure", fmt.Sprint(id), c.waitProcedure(ctx, id))
}

func (c *Client) waitProcedure(ctx context.Context, id uint64) error {
	start := time.Now()
	for n := 0; ; n++ {
		var resp hbpb.GetProcedureResultResponse
		if err := c.callMaster(ctx, "getProcedureResult", &hbpb.GetProcedureResultRequest{ProcId: &id}, &resp, callOptions{}); err != nil {
			return err
		}
		switch resp.GetState() {
		case hbpb.GetProcedureResultResponse_FINISHED:
			if resp.Exception == nil {
				return nil
			}
			return &ProcedureError{ID: id, Remote: foreignError(resp.Exception)}
		case hbpb.GetProcedureResultResponse_NOT_FOUND:
			return &ProcedureUnknownError{ID: id}
		}
		if waited := time.Since(start); waited > c.cfg.ProcedureTimeout {
			return hbackup.E("", "", hbackup.KindTimeout, &ProcedureRunningError{id, waited}).
				WithHint("look at the master's list of procedures and locks")
		}
		if err := sleep(ctx, procedureBackoff.pause(n)); err != nil {
			return err
		}
	}
}

func foreignError(e *hbpb.ForeignExceptionMessage) *RemoteError {
	g := e.GetGenericException()
	return &RemoteError{
		Method:     "procedure",
		Class:      cleanLine(g.GetClassName(), 200),
		Message:    firstMessage(g.GetClassName(), g.GetMessage()),
		DoNotRetry: true,
	}
}

// finish waits for the procedure that a call has started; 0 is none. When the
// master has forgotten it, or never named one, effect is asked for the real state.
func (c *Client) finish(ctx context.Context, id uint64, effect func(context.Context) (bool, error)) error {
	if id != 0 {
		err := c.waitProcedure(ctx, id)
		var unknown *ProcedureUnknownError
		if !errors.As(err, &unknown) {
			return err
		}
	}
	there, err := effect(ctx)
	if err != nil {
		return err
	}
	if !there {
		return hbackup.E("", "", hbackup.KindTimeout, &ProcedureUnknownError{ID: id}).
			WithHint("its effect is not to be seen: look at the master's log, then run it again")
	}
	return nil
}
