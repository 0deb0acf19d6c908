package gcs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/storetest/proxy"
)

// TestCancelAfterLastByte cancels a put while the store is at work on it. The
// answer is waited for, and when it does not come the object itself is asked.
func TestCancelAfterLastByte(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes {
		for _, mode := range []string{"answer comes", "answer never comes", "store did nothing"} {
			t.Run(shape.name+"/"+mode, func(t *testing.T) {
				s, direct, p := behindAs(t, shape.carrier, nil)
				s.c.settle = 100 * time.Millisecond
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
					if op != shape.commit {
						return false
					}
					switch mode {
					case "answer comes":
						resp, err := p.Forward(r, r.Body)
						if err != nil {
							t.Errorf("forward: %v", err)
							return true
						}
						defer resp.Body.Close()
						cancel()
						proxy.Answer(w, resp)
						io.Copy(w, resp.Body)
					case "answer never comes":
						body, _ := io.ReadAll(r.Body)
						if resp, err := p.Forward(r.WithContext(context.WithoutCancel(r.Context())), bytes.NewReader(body)); err != nil {
							t.Errorf("forward: %v", err)
						} else {
							resp.Body.Close()
						}
						cancel()
						<-r.Context().Done()
					default:
						io.Copy(io.Discard, r.Body)
						cancel()
						<-r.Context().Done()
					}
					return true
				})
				data := bytesFor(shape.size)
				_, err := s.Put(ctx, "a/key", bytes.NewReader(data), storage.PutOptions{Size: int64(len(data)), IfAbsent: shape.ifAbsent})
				if mode == "store did nothing" {
					if !errors.Is(err, context.Canceled) {
						t.Fatalf("Put: %v; want it cancelled", err)
					}
					checkKind(t, err, hbackup.KindInterrupted)
					checkAbsent(t, direct, "a/key")
					return
				}
				if err != nil {
					t.Fatalf("Put has put the object, but says %v", err)
				}
				checkHas(t, direct, "a/key", data)
			})
		}
	}
}

// TestCancelBeforeLastByte cancels while bytes are on their way: it ends at once
// and leaves nothing. The bytes are more than the buffers of a connection hold.
func TestCancelBeforeLastByte(t *testing.T) {
	t.Parallel()
	const large = 32 << 20
	for _, shape := range []struct {
		name    string
		size    int
		carrier string
	}{{"whole", large, opInsert}, {"chunks", 2*large + 1, opChunk}, {"parts", 2*large + 1, opPart}} {
		t.Run(shape.name, func(t *testing.T) {
			s, direct, p := behind(t, func(c *Config) {
				if c.ChunkSize = large; shape.carrier == opPart {
					c.parallelFrom = 2 * large
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				if op != shape.carrier {
					return false
				}
				io.CopyN(io.Discard, r.Body, 1000)
				cancel()
				<-ctx.Done()
				if n, err := io.Copy(io.Discard, r.Body); err == nil {
					t.Errorf("all %d bytes came in spite of the cancel", n+1000)
				}
				return true
			})
			_, err := s.Put(ctx, "a/key", bytes.NewReader(make([]byte, shape.size)), storage.PutOptions{Size: int64(shape.size)})
			checkKind(t, err, hbackup.KindInterrupted)
			checkAbsent(t, direct, "a/key")
			checkNothingStaged(t, direct)
		})
	}
}
