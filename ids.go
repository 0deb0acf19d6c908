package hbackup

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"
)

// BackupID names one run. ImageID names one image of a run. Both sort by time
// as strings and are unique over clusters and hosts: a UTC millisecond and 50
// random bits, for example 20261130T230501.123Z-7f3k2m9q4x. An image id is its
// run's id and the table's number in the run: 20261130T230501.123Z-7f3k2m9q4x.0003.
type (
	BackupID string
	ImageID  string
)

// RequestID is the caller's own name for a run. Running again with the same
// request id continues or confirms that run and never starts a second one.
// It becomes a path segment: [A-Za-z0-9][A-Za-z0-9_.-]*, 128 bytes.
type RequestID string

const idTimeLayout = "20060102T150405.000Z"

// crockford is base 32 without the letters that are misread; lower case so that
// ids sort the same on stores that fold case.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// NewBackupID makes an id for a run that starts at the given moment.
func NewBackupID(at time.Time) BackupID {
	var raw [8]byte
	rand.Read(raw[:]) // never fails: crypto/rand ends the process instead
	bits := binary.BigEndian.Uint64(raw[:])
	tail := make([]byte, 10)
	for i := range tail {
		tail[i] = crockford[bits&31]
		bits >>= 5
	}
	return BackupID(at.UTC().Format(idTimeLayout) + "-" + string(tail))
}

// Image gives the id of the run's image number n, counted from 0.
func (b BackupID) Image(n int) ImageID { return ImageID(fmt.Sprintf("%s.%04d", b, n)) }

// Time gives the moment in the id.
func (b BackupID) Time() (time.Time, error) {
	if err := b.Validate(); err != nil {
		return time.Time{}, err
	}
	return time.Parse(idTimeLayout, string(b[:len(idTimeLayout)]))
}

// Validate reports whether the id has the form that NewBackupID gives.
func (b BackupID) Validate() error {
	const n = len(idTimeLayout)
	if len(b) != n+11 || b[n] != '-' {
		return fmt.Errorf("%q is not a backup id (form: 20261130T230501.123Z-7f3k2m9q4x)", string(b))
	}
	if _, err := time.Parse(idTimeLayout, string(b[:n])); err != nil {
		return fmt.Errorf("%q is not a backup id: its time cannot be read", string(b))
	}
	for i := n + 1; i < len(b); i++ {
		if c := b[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z') {
			return fmt.Errorf("%q is not a backup id: character %q", string(b), string(rune(c)))
		}
	}
	return nil
}

// Backup gives the run that the image belongs to.
func (i ImageID) Backup() (BackupID, error) {
	const n = len(idTimeLayout) + 11
	if len(i) < n+5 || i[n] != '.' {
		return "", fmt.Errorf("%q is not an image id (form: 20261130T230501.123Z-7f3k2m9q4x.0003)", string(i))
	}
	for _, c := range i[n+1:] {
		if c < '0' || c > '9' {
			return "", fmt.Errorf("%q is not an image id: its number cannot be read", string(i))
		}
	}
	b := BackupID(i[:n])
	return b, b.Validate()
}

// Validate reports whether the id has the form that BackupID.Image gives.
func (i ImageID) Validate() error {
	_, err := i.Backup()
	return err
}

// Validate reports why the id cannot be used.
func (r RequestID) Validate() error {
	if r == "" {
		return fmt.Errorf("the request id is empty")
	}
	if len(r) > 128 {
		return fmt.Errorf("the request id is longer than 128 bytes")
	}
	for i := 0; i < len(r); i++ {
		b := r[i]
		if isAlnum(b) || (i > 0 && (b == '_' || b == '-' || b == '.')) {
			continue
		}
		return fmt.Errorf("request id %q: character %q is not allowed (letters, digits, '_', '-', '.', starting with a letter or digit)", string(r), string(rune(b)))
	}
	return nil
}
