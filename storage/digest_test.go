package storage

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

func TestDigest(t *testing.T) {
	// The check value of CRC-64/NVME in the catalogue of CRCs.
	if got := DigestOf([]byte("123456789")); got != 0xae8b14860a799888 {
		t.Errorf("the check value is %s", got)
	}
	if got := DigestOf(nil).String(); got != "crc64nvme:0000000000000000" {
		t.Errorf("the digest of nothing is %s", got)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	data := make([]byte, 5000)
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	for range 200 {
		cut := rnd.IntN(len(data) + 1)
		h := NewHash()
		h.Write(data[:cut])
		h.Write(data[cut:])
		if whole := DigestOf(data); AddDigest(DigestOf(data[:cut]), data[cut:]) != whole || Digest(h.Sum64()) != whole {
			t.Fatalf("cut at %d the digest is another", cut)
		}
	}
}

func TestDigestText(t *testing.T) {
	d := DigestOf([]byte("x"))
	b, err := json.Marshal(map[string]Digest{"d": d})
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]Digest
	if err := json.Unmarshal(b, &back); err != nil || back["d"] != d {
		t.Errorf("%s gave %v, %v", b, back, err)
	}
	for _, s := range []string{"", "crc64nvme", "crc64nvme:", "crc64nvme:00", "crc32c:0000000000000000", "crc64nvme:000000000000000g", "crc64nvme:00000000000000000", "0000000000000000"} {
		if _, err := ParseDigest(s); err == nil {
			t.Errorf("%q is taken for a digest", s)
		}
	}
}

func FuzzParseDigest(f *testing.F) {
	f.Add("crc64nvme:0123456789abcdef")
	f.Add("crc64nvme:0123456789ABCDEF")
	f.Add("md5:0")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDigest(s)
		if err != nil {
			return
		}
		if again, err := ParseDigest(d.String()); err != nil || again != d {
			t.Errorf("%q gave %s, and that %s, %v", s, d, again, err)
		}
	})
}
