//go:build unix && !linux

package file

import (
	"errors"
	"os"
)

func openUnnamed(dir) (*os.File, error) { return nil, errors.ErrUnsupported }

func linkUnnamed(*os.File, dir, string) error { return errors.ErrUnsupported }

// world cannot be told, so the age of a temporary file alone decides.
func world() string { return "" }

func reserve(*os.File, int64) error { return nil }
