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

// gatewayBinary gives the path of the S3 gateway.
func gatewayBinary(ctx context.Context) (string, error) {
	return toolBinary(ctx, "versitygw", "github.com/versity/versitygw/cmd/versitygw")
}

// fakeGCSBinary gives the path of the stand-in for Google Cloud Storage.
func fakeGCSBinary(ctx context.Context) (string, error) {
	return toolBinary(ctx, "fake-gcs-server", "github.com/fsouza/fake-gcs-server")
}

// toolBinary gives the path of a program that is built from the module e2e/tools.
func toolBinary(ctx context.Context, name, pkg string) (string, error) {
	tools, err := toolsDir()
	if err != nil {
		return "", err
	}
	var pins [][]byte
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(tools, file))
		if err != nil {
			return "", err
		}
		pins = append(pins, text)
	}
	goVersion, err := output(ctx, tools, "go", "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	dir, err := entry(ctx, name+"-"+hashOf(append(pins, goVersion)...), func(dir string) error {
		return run(ctx, tools, "go", "build", "-mod=readonly", "-o", filepath.Join(dir, name), pkg)
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, name), nil
}

// toolsDir finds e2e/tools from any directory of the tree. It is a module of its
// own, so that the dependencies of the tools stay out of hbackup's.
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
