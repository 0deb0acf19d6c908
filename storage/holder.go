package storage

import (
	"context"
	"io"
	"time"

	"hbackup"
)

// Holder is a store that can take an object whole without showing it until it is
// finished: the bytes are held by the store, and any process that has the receipt
// can make the object of them. No reader sees a held upload: not Stat, not Get,
// not List.
//
// The life of a held upload is open, fill, and then finish or drop:
//
//   - OpenUpload makes it and gives its ticket. No byte of a body has been sent
//     then, so that the ticket can be recorded first: what has no record cannot
//     be found again when its process dies.
//   - FillUpload sends the body and gives the receipt, which says all that is
//     needed to finish.
//   - FinishUpload makes the object visible, whole or not at all.
//   - DropUpload gives the upload up, and its bytes with it.
//
// Tickets and receipts are JSON and hold no secret.
type Holder interface {
	// OpenUpload makes an upload for the key. The stamp is a random text of the
	// caller's; it becomes a part of the object and tells it from the objects of
	// all other uploads of the key. A lost answer may leave an upload of which
	// there is no ticket: after an error, and when the ticket says Doubtful, only
	// OpenUploads can find it.
	OpenUpload(ctx context.Context, key Key, stamp string) (Ticket, error)

	// FillUpload sends the body. It is held to opts as that of Put is; IfAbsent
	// means nothing here. When it returns no request is under way any more. After
	// an error the upload is still there: it can be filled again or dropped. One
	// that was dropped meanwhile is KindConflict.
	FillUpload(ctx context.Context, t Ticket, body io.Reader, opts PutOptions) (Receipt, error)

	// FinishUpload makes the object visible, if the bytes that the store holds
	// have the size and digest of the receipt; else it is KindCorrupt. It may be
	// repeated, by whichever process and after whatever error: an object that has
	// the ticket's stamp is success. It never replaces what was there before it
	// was called: an object that the store knows to have the same bytes is
	// success, and the upload is dropped; any other one is KindExists, and the
	// upload stays. When neither the upload nor an object is there it is
	// KindConflict.
	FinishUpload(ctx context.Context, r Receipt) (Object, error)

	// DropUpload gives the upload up and returns nil when the store says that
	// nothing of it is left. It may be repeated. An upload that was finished is an
	// object; nothing is done to that.
	DropUpload(ctx context.Context, t Ticket) error

	// OpenUploads lists the uploads of exactly that key which were neither
	// finished nor dropped, whoever made them, a thousand at most. Their stamps
	// are not known.
	OpenUploads(ctx context.Context, key Key) ([]Ticket, error)
}

// Ticket names a held upload.
type Ticket struct {
	Key   Key    `json:"key"`
	ID    string `json:"id"` // the store's own name for the upload
	Stamp string `json:"stamp,omitempty"`
	// Doubtful says that the upload was asked for more than once, because an
	// answer was lost: there may be another one that has no ticket.
	Doubtful bool `json:"doubtful,omitempty"`
	// Expires is when the store will drop the upload by itself, as it said when
	// the upload was made; zero when it said nothing.
	Expires time.Time `json:"expires,omitzero"`
}

// Receipt is what finishing an upload takes.
type Receipt struct {
	Ticket
	Size   int64      `json:"size"`
	Digest Digest     `json:"digest"`
	Check  string     `json:"check,omitempty"` // the store's own checksum of the whole
	Parts  []HeldPart `json:"parts"`           // in order
}

// HeldPart is one part of a filled upload in the store's own words.
type HeldPart struct {
	Tag string `json:"tag"`
	Sum string `json:"sum,omitempty"`
}

// Wrapper is a store around another one that is a Holder when that one is.
type Wrapper interface {
	Holder() (Holder, bool)
}

// HolderOf gives the store as a Holder, if it is one.
func HolderOf(s Store) (Holder, bool) {
	if w, ok := s.(Wrapper); ok {
		return w.Holder()
	}
	h, ok := s.(Holder)
	return h, ok
}

// Object describes what is there once the upload is finished.
func (r Receipt) Object(modified time.Time) Object {
	return Object{Key: r.Key, Size: r.Size, Digest: r.Digest, HasDigest: true, Modified: modified}
}

// CheckOpen is Check for OpenUpload: it also refuses a missing stamp.
func CheckOpen(ctx context.Context, l Location, key Key, stamp string) error {
	if err := Check(ctx, "open upload", l, key); err != nil {
		return err
	}
	if stamp == "" {
		return hbackup.Errorf("open upload", l.At(key), hbackup.KindUsage, "it has no stamp")
	}
	return nil
}

// CheckTicket is Check for a ticket, which may come from a record.
func CheckTicket(ctx context.Context, op string, l Location, t Ticket) error {
	if err := Check(ctx, op, l, t.Key); err != nil {
		return err
	}
	if t.ID == "" {
		return hbackup.Errorf(op, l.At(t.Key), hbackup.KindUsage, "the ticket names no upload")
	}
	return nil
}

// CheckFill is CheckTicket for FillUpload: it also refuses options that cannot be.
func CheckFill(ctx context.Context, l Location, t Ticket, opts PutOptions) error {
	if err := CheckTicket(ctx, "fill upload", l, t); err != nil {
		return err
	}
	return CheckPut(ctx, l, t.Key, opts)
}

// CheckFinish is CheckTicket for FinishUpload: it also refuses a receipt that
// cannot be.
func CheckFinish(ctx context.Context, l Location, r Receipt) error {
	if err := CheckTicket(ctx, "finish upload", l, r.Ticket); err != nil {
		return err
	}
	if r.Stamp == "" || r.Size < 0 || len(r.Parts) == 0 {
		return hbackup.Errorf("finish upload", l.At(r.Key), hbackup.KindUsage, "the receipt has no stamp, no parts or a negative size")
	}
	return nil
}
