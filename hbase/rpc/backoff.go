package rpc

import (
	"math/rand/v2"
	"time"
)

// backoff gives growing, jittered pauses.
type backoff struct{ first, most time.Duration }

var (
	defaultBackoff   = backoff{50 * time.Millisecond, 3 * time.Second}
	procedureBackoff = backoff{10 * time.Millisecond, time.Second}
)

// pause before attempt n, counted from 0: between half and the whole of first·2ⁿ.
func (b backoff) pause(n int) time.Duration {
	d := b.most
	if n < 20 {
		d = min(b.first<<n, b.most)
	}
	return d/2 + rand.N(d/2+1)
}
