package bench_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hbackup/bench"
)

// send makes one request through a counted transport.
func send(ctx context.Context, t *testing.T, m *bench.Meter, url string, body io.Reader) error {
	t.Helper()
	client := &http.Client{Transport: m.Transport(http.DefaultTransport, func(r *http.Request) string { return strings.ToLower(r.Method) })}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func TestBodiesAreCounted(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "answer")
	}))
	defer server.Close()
	m := bench.NewMeter(0)
	for _, body := range []io.Reader{strings.NewReader("known"), io.MultiReader(strings.NewReader("unknown")), nil} {
		if err := send(t.Context(), t, m, server.URL, body); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.Traffic(); got.Up != int64(len("known")+len("unknown")) || got.Down != 3*int64(len("answer")) || got.Requests["put"] != 3 || got.Total() != 3 {
		t.Errorf("%+v", got)
	}
}

// A request waits before it leaves, and the wait ends with its context.
func TestLatencyObeysTheContext(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request has left") }))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := bench.NewMeter(time.Hour)
	if err := send(ctx, t, m, server.URL, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if m.Traffic().Total() > 1 {
		t.Errorf("%+v", m.Traffic())
	}
}

func TestOptions(t *testing.T) {
	good := bench.Options{Protocols: bench.Protocols, Files: 10, Size: 10, Tasks: 2, Parallel: 2}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*bench.Options){
		"no files":      func(o *bench.Options) { o.Files = 0 },
		"empty files":   func(o *bench.Options) { o.Size = 0 },
		"too many":      func(o *bench.Options) { o.Files = bench.MaxFiles + 1 },
		"too large":     func(o *bench.Options) { o.Size = bench.MaxSize + 1 },
		"too much":      func(o *bench.Options) { o.Files, o.Size = bench.MaxFiles, bench.MaxSize },
		"idle tasks":    func(o *bench.Options) { o.Tasks = 11 },
		"no protocol":   func(o *bench.Options) { o.Protocols = nil },
		"into the past": func(o *bench.Options) { o.Latency = -1 },
	} {
		o := good
		spoil(&o)
		if err := o.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestParseProtocols(t *testing.T) {
	if all, err := bench.ParseProtocols(""); err != nil || len(all) != len(bench.Protocols) {
		t.Errorf("%v, %v", all, err)
	}
	if some, err := bench.ParseProtocols("hbackup, v1"); err != nil || len(some) != 2 || some[0] != bench.Hbackup || some[1] != bench.V1 {
		t.Errorf("%v, %v", some, err)
	}
	for _, list := range []string{"v3", "v1,,v2", "v1,v1", ","} {
		if _, err := bench.ParseProtocols(list); err == nil {
			t.Errorf("%q was accepted", list)
		}
	}
}
