package servers

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strings"

	"hbackup"
)

// GCSOptions choose how the stand-in for Google Cloud Storage is started.
type GCSOptions struct {
	Dir     string   // where the log goes; a temporary directory, removed at Stop, when empty
	Buckets []string // made at the start
}

// GCS is a fake-gcs-server process that keeps its objects in memory. It speaks
// enough of the service's protocol for Google's own library, and is laxer than
// the service: what hangs on its strictness is tested with storage/gcs/gcstest.
type GCS struct {
	dir     *workDir
	port    int
	process *process
}

// StartGCS starts the server and returns when the buckets exist.
func StartGCS(ctx context.Context, o GCSOptions) (*GCS, error) {
	binary, err := fakeGCSBinary(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := newWorkDir(o.Dir, "gcs")
	if err != nil {
		return nil, err
	}
	const tries = 5 // somebody may take the port that was free a moment ago
	for range tries {
		g := &GCS{dir: dir}
		if err = g.start(ctx, binary, o.Buckets); err == nil {
			return g, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, dir.afterFailure(ctx, err)
}

func (g *GCS) start(ctx context.Context, binary string, buckets []string) error {
	var err error
	if g.port, err = freePort(); err != nil {
		return err
	}
	cmd := exec.Command(binary, "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", fmt.Sprint(g.port),
		"-public-host", address(g.port), "-external-url", g.Endpoint(), "-log-level", "error")
	p, err := spawn("fake GCS server", g.LogFile(), cmd, nil)
	if err != nil {
		return err
	}
	g.process = p
	for _, b := range buckets {
		if err = eventually(ctx, p.ended, func() error { return g.createBucket(ctx, b) }); err != nil {
			break
		}
	}
	if err == nil {
		return nil
	}
	ended := !p.alive()
	p.kill()
	if ended {
		return p.failure("start")
	}
	return hbackup.E("start the fake GCS server", address(g.port), hbackup.KindOther, err)
}

func (g *GCS) createBucket(ctx context.Context, name string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.Endpoint()+"/storage/v1/b?project=test",
		strings.NewReader(fmt.Sprintf(`{"name":%q}`, name)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return answeredWell(http.DefaultClient.Do(req))
}

// CreateEmpty makes an empty object, also under names that hbackup never uses.
func (g *GCS) CreateEmpty(ctx context.Context, bucket, name string) error {
	at := fmt.Sprintf("%s/upload/storage/v1/b/%s/o?uploadType=media&name=%s", g.Endpoint(), url.PathEscape(bucket), url.QueryEscape(name))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, http.NoBody)
	if err != nil {
		return err
	}
	return answeredWell(http.DefaultClient.Do(req))
}

func answeredWell(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", resp.Request.Method, resp.Request.URL, resp.Status)
	}
	return nil
}

// Endpoint is the server's URL, as the configuration's endpoint takes it.
func (g *GCS) Endpoint() string { return "http://" + address(g.port) }

// LogFile has the server's output.
func (g *GCS) LogFile() string { return g.dir.path("gcs.log") }

// Stop ends the server and removes its directory if it was a temporary one.
func (g *GCS) Stop() error {
	g.process.kill()
	return g.dir.remove()
}
