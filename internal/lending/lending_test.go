package lending

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func client(t *testing.T) *http.Client {
	tr := &http.Transport{DialContext: Wrap((&net.Dialer{}).DialContext)}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func send(t *testing.T, c *http.Client, to string, body io.ReadCloser, length int) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, to, body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = int64(length)
	return c.Do(req)
}

// TestBodyArrives sends bodies of many sizes, and one of another kind.
func TestBodyArrives(t *testing.T) {
	var got []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got, _ = io.ReadAll(r.Body) }))
	defer s.Close()
	c := client(t)
	for _, n := range []int{0, 1, 4095, 1 << 20, 3<<20 + 7} {
		data := bytes.Repeat([]byte("abcdefg"), n/7+1)[:n]
		for name, body := range map[string]io.ReadCloser{"lent": NewBody(data), "other": io.NopCloser(struct{ io.Reader }{bytes.NewReader(data)})} {
			resp, err := send(t, c, s.URL, body, n)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if !bytes.Equal(got, data) {
				t.Errorf("%s: %d of %d bytes arrived, or others", name, len(got), n)
			}
		}
	}
}

// TestRevoke takes a body back from a server that answers before it has read it,
// and writes over the memory: with the race detector this shows who still reads.
func TestRevoke(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer s.Close()
	c := client(t)
	data := make([]byte, 16<<20)
	for i := range 20 {
		body := NewBody(data)
		if resp, err := send(t, c, s.URL, body, len(data)); err == nil {
			resp.Body.Close()
		}
		body.Revoke()
		for j := range data {
			data[j] = byte(i)
		}
		if n, err := body.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
			t.Fatalf("a revoked body gives %d bytes, %v", n, err)
		}
	}
}

// TestShortBody has a body that is shorter than announced: the request fails.
func TestShortBody(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			t.Error("the server has seen a whole body")
		}
	}))
	defer s.Close()
	if resp, err := send(t, client(t), s.URL, NewBody([]byte("abc")), 10); err == nil {
		resp.Body.Close()
		t.Error("the request succeeded")
	}
}
