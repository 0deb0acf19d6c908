package storage

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	"github.com/minio/crc64nvme"
)

// Digest is the CRC-64/NVME of an object's content. It is what S3 keeps and
// checks for whole objects on its own, parts can be combined, and it costs a few
// per cent of a core where a cryptographic hash costs most of one. It finds
// damage; it is no proof against somebody who forges both data and manifest.
type Digest uint64

// DigestAlgorithm is the name under which digests are stored.
const DigestAlgorithm = "crc64nvme"

// String gives "crc64nvme:0123456789abcdef".
func (d Digest) String() string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(d))
	return DigestAlgorithm + ":" + hex.EncodeToString(b[:])
}

// ParseDigest reads what String gives.
func ParseDigest(s string) (Digest, error) {
	name, value, ok := strings.Cut(s, ":")
	if !ok || name != DigestAlgorithm || len(value) != 16 {
		return 0, fmt.Errorf("%q is not a %s digest", s, DigestAlgorithm)
	}
	b, err := hex.DecodeString(value)
	if err != nil {
		return 0, fmt.Errorf("%q is not a %s digest", s, DigestAlgorithm)
	}
	return Digest(binary.BigEndian.Uint64(b)), nil
}

// MarshalText and UnmarshalText make digests readable in JSON.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText gives.
func (d *Digest) UnmarshalText(b []byte) error {
	v, err := ParseDigest(string(b))
	if err == nil {
		*d = v
	}
	return err
}

// NewHash gives a running digest; its Sum64 is the Digest.
func NewHash() hash.Hash64 { return crc64nvme.New() }

// DigestOf gives the digest of a whole.
func DigestOf(b []byte) Digest { return Digest(crc64nvme.Checksum(b)) }

// AddDigest gives the digest of a content of which sum is the digest of the
// first part and b is the rest.
func AddDigest(sum Digest, b []byte) Digest { return Digest(crc64nvme.Update(uint64(sum), b)) }
