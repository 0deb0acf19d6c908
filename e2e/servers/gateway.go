package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hbackup"
)

// gatewayBinary gives the path of the S3 gateway, built from the module e2e/tools.
func gatewayBinary(ctx context.Context) (string, error) {
	tools, err := toolsDir()
	if err != nil {
		return "", err
	}
	var pins [][]byte
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(tools, name))
		if err != nil {
			return "", err
		}
		pins = append(pins, text)
	}
	goVersion, err := output(ctx, tools, "go", "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	dir, err := entry(ctx, "versitygw-"+hashOf(append(pins, goVersion)...), func(dir string) error {
		return run(ctx, tools, "go", "build", "-mod=readonly", "-o", filepath.Join(dir, "versitygw"),
			"github.com/versity/versitygw/cmd/versitygw")
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "versitygw"), nil
}

// toolsDir finds e2e/tools from any directory of the tree. It is a module of its
// own, so that the gateway's dependencies stay out of hbackup's.
func toolsDir() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		tools := filepath.Join(dir, "e2e", "tools")
		if text, err := os.ReadFile(filepath.Join(tools, "go.mod")); err == nil && strings.HasPrefix(string(text), "module hbackup/") {
			return tools, nil
		}
		if dir == filepath.Dir(dir) {
			return "", hbackup.Errorf("find e2e/tools", wd, hbackup.KindNotFound, "not in hbackup's source tree").
				WithHint("run it from a directory of the tree")
		}
	}
}

// eventually repeats an attempt until it succeeds, the context ends or stop is closed.
func eventually(ctx context.Context, stop <-chan struct{}, attempt func() error) error {
	for {
		err := attempt()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), fmt.Errorf("last attempt: %w", err))
		case <-stop:
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}
