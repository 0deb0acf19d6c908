package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"hbackup"
)

// allKinds reads the kinds from the source, so that a new one cannot be forgotten.
func allKinds(t *testing.T) []hbackup.Kind {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []hbackup.Kind
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || fmt.Sprint(spec.Type) != "Kind" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, hbackup.Kind(text))
		return true
	})
	if len(kinds) < 15 {
		t.Fatalf("only %d kinds were found", len(kinds))
	}
	return kinds
}

func TestEveryKindHasItsCode(t *testing.T) {
	named := map[hbackup.Kind]int{}
	for _, c := range exitCodes {
		for _, k := range c.kinds {
			named[k]++
		}
	}
	for _, k := range allKinds(t) {
		if named[k] != 1 {
			t.Errorf("kind %q is named %d times in the table of exit codes", k, named[k])
		}
		if code := codeOf(t.Context(), hbackup.Errorf("op", "path", k, "cause")); code == exitDone {
			t.Errorf("kind %q: an error exits with 0", k)
		}
	}
}

func TestCodeOf(t *testing.T) {
	e := func(k hbackup.Kind) error { return hbackup.Errorf("op", "", k, "cause") }
	signalled, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want exitCode
	}{
		{"nothing", t.Context(), nil, 0},
		{"plain error", t.Context(), errors.New("x"), 1},
		{"usage", t.Context(), e(hbackup.KindUsage), 2},
		{"wrapped", t.Context(), fmt.Errorf("x: %w", e(hbackup.KindBusy)), 11},
		{"all alike", t.Context(), errors.Join(e(hbackup.KindDenied), e(hbackup.KindDenied)), 12},
		{"alike in code", t.Context(), errors.Join(e(hbackup.KindCorrupt), e(hbackup.KindIncomplete)), 14},
		{"unlike", t.Context(), errors.Join(e(hbackup.KindDenied), e(hbackup.KindBusy)), 1},
		{"interrupted", t.Context(), context.Canceled, 130},
		{"signal hides the rest", signalled, e(hbackup.KindUnavailable), 130},
		{"signal came too late", signalled, nil, 0},
		{"deadline", t.Context(), context.DeadlineExceeded, 1},
	} {
		if got := codeOf(c.ctx, c.err); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A result that cannot be written is a failure.
func TestLostOutputIsAFailure(t *testing.T) {
	p := &program{stdout: brokenPipe{}, stderr: discard{}, environ: []string{}, now: fakeNow, connect: fakes["good"].connect}
	for _, form := range formats {
		if code := p.run(t.Context(), []string{"version", "-o", form}); code != exitFailed {
			t.Errorf("%s: exit code %d", form, code)
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
