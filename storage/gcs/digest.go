package gcs

import (
	"context"
	"hash/crc32"
	"net/http"
	"sync"

	gcs "cloud.google.com/go/storage"

	"hbackup/internal/crc"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// combiner makes the CRC32C of parts from that of the whole.
var combiner = sync.OnceValue(func() *crc.Combiner[uint32] { return crc.New[uint32](crc32.Castagnoli) })

// metadata is the user metadata that the object begins with. The digest is in it
// when it is known by then.
func (p *put) metadata() map[string]string {
	m := map[string]string{stampName: p.stamp}
	if p.opts.Digest != nil {
		m[digestName] = p.opts.Digest.String() // which the body is held to
	}
	return m
}

// keepDigest adds our digest to the metadata of an object whose upload began
// before it was known, and gives the object's attributes. Only this very object
// can get it, and only once. An object that does not get it is no worse: the
// manifest of its image has the digest.
func (p *put) keepDigest(ctx context.Context, name string, attrs *gcs.ObjectAttrs) *gcs.ObjectAttrs {
	if attrs.Metadata[digestName] != "" || p.noUpdate.Load() {
		return attrs
	}
	h := p.client.Bucket(p.c.Bucket).Object(name).If(gcs.Conditions{GenerationMatch: attrs.Generation, MetagenerationMatch: attrs.Metageneration})
	out, err := h.Update(ctx, gcs.ObjectAttrsToUpdate{Metadata: map[string]string{stampName: p.stamp, digestName: p.body.Digest().String()}})
	switch {
	case statusOf(err) == http.StatusForbidden:
		p.noUpdate.Store(true) // the right is missing, and will be for the next one
		return attrs
	case err != nil:
		return attrs
	}
	return out
}
