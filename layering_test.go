package hbackup_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// layers say who may know whom: a package may import packages of a lower layer,
// and of its own where its folder says so. The first prefix that fits counts.
var layers = []struct {
	prefix string
	layer  int
	inside bool // packages of this folder may import each other
}{
	{"cmd/", 9, true},
	{"bench", 7, true}, // the only place where anything is committed by renaming
	{"check", 8, false},
	{"backup", 7, false},
	{"restore", 7, false},
	{"catalog", 6, true},
	{"committer", 5, false},
	{"engine", 5, false},
	{"config", 5, false},
	{"hbase/", 3, true},
	{"storage/storetest", 4, true},
	{"storage/storebench", 4, true},
	{"storage/lease", 4, true},
	{"storage/", 3, true},
	{"storage", 2, false},
	{"internal/", 1, true},
	{"", 0, false}, // the words
}

func layerOf(pkg string) (int, string, bool) {
	for _, l := range layers {
		if pkg == l.prefix || strings.HasPrefix(pkg, l.prefix) && (strings.HasSuffix(l.prefix, "/") || l.prefix == "") || strings.HasPrefix(pkg, l.prefix+"/") {
			return l.layer, l.prefix, l.inside
		}
	}
	return 0, "", false
}

// Arrows only go down. HBase's side and the stores' side know nothing of each other.
func TestWhoKnowsWhom(t *testing.T) {
	const module = "hbackup"
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (file == "e2e" || file != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		from := path.Dir(filepath.ToSlash(file))
		if from == "." {
			from = ""
		}
		fromLayer, fromPrefix, inside := layerOf(from)
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if imported != module && !strings.HasPrefix(imported, module+"/") {
				if from == "" && strings.Contains(imported, ".") {
					t.Errorf("%s imports %s: the words need only the standard library", file, imported)
				}
				continue
			}
			to := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
			toLayer, toPrefix, _ := layerOf(to)
			switch {
			case toLayer < fromLayer:
				if strings.HasPrefix(from, "hbase/") && strings.HasPrefix(to, "storage") {
					t.Errorf("%s imports %s: HBase's side knows no store", file, imported)
				}
			case toLayer == fromLayer && toPrefix == fromPrefix && inside:
			default:
				t.Errorf("%s imports %s: that arrow does not go down", file, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
