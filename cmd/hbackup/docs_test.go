package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"hbackup/config"
)

// documents are the pages whose examples are tested.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"../../README.md", "../../CONTRIBUTING.md"} {
		if _, err := os.Stat(p); err == nil {
			pages = append(pages, p)
		}
	}
	if len(pages) < 3 {
		t.Fatalf("only %v were found", pages)
	}
	return pages
}

var codeBlock = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```")

// blocks gives the code blocks of a page in one of the languages.
func blocks(t *testing.T, page string, languages ...string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range codeBlock.FindAllStringSubmatch(string(text), -1) {
		for _, l := range languages {
			if m[1] == l {
				found = append(found, m[2])
			}
		}
	}
	return found
}

// Every configuration in the documentation loads.
func TestExampleConfigurations(t *testing.T) {
	n := 0
	for _, page := range documents(t) {
		for _, text := range blocks(t, page, "yaml") {
			n++
			file := filepath.Join(t.TempDir(), "hbackup.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(config.LoadOptions{Path: file, Environ: []string{}})
			if err != nil {
				t.Errorf("%s: %v\n%s", page, err, text)
				continue
			}
			for _, w := range cfg.Warnings {
				if !strings.Contains(w.Msg, "read secret") {
					t.Errorf("%s: warning: %s\n%s", page, w, text)
				}
			}
		}
	}
	if n < 2 {
		t.Errorf("only %d configurations were found", n)
	}
}

// Every command line in the documentation and in the help is understood.
func TestExampleCommands(t *testing.T) {
	n := 0
	for _, page := range documents(t) {
		for _, text := range blocks(t, page, "sh", "bash", "console", "shell") {
			for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
				if args := commandLine(line); args != nil {
					n++
					understood(t, page, args)
				}
			}
		}
	}
	help, err := filepath.Glob("testdata/help/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range help {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		_, examples, _ := strings.Cut(string(text), "\nexamples:\n")
		for line := range strings.Lines(examples) {
			if args, ok := strings.CutPrefix(line, "  hbackup "); ok {
				n++
				understood(t, page, strings.Fields(args))
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d command lines were found", n)
	}
}

// commandLine gives the arguments of a line that calls hbackup, or nil.
func commandLine(line string) []string {
	line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
	for _, end := range []string{" #", " |", " >", " &&", ";"} {
		line, _, _ = strings.Cut(line, end)
	}
	words := strings.Fields(line)
	for i, w := range words {
		if w == "hbackup" || strings.HasSuffix(w, "/hbackup") {
			args := words[i+1:]
			for j := range args {
				args[j] = strings.Trim(args[j], `'"`)
			}
			return args
		}
		if !strings.Contains(w, "=") && w != "sudo" {
			return nil
		}
	}
	return nil
}

// understood runs the command line with services that say yes.
func understood(t *testing.T, page string, args []string) {
	t.Helper()
	var real []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--config":
			i++ // the test has a file of its own
		case args[i] == "ID" || strings.HasPrefix(args[i], "$"):
			real = append(real, string(fakeID))
		default:
			real = append(real, args[i])
		}
	}
	_, stderr, code := invoke(t, "good", real...)
	if code == exitUsage {
		t.Errorf("%s: hbackup %s\n%s", page, strings.Join(args, " "), stderr)
	}
}

// Tables in the documentation that are made from the source.
func TestGeneratedTables(t *testing.T) {
	generated(t, "../../docs/exit-codes.md", "exit codes", exitCodeTable())
	generated(t, "../../docs/configuration.md", "keys", config.Markdown())
}

// generated compares what stands between the markers of a page, or replaces it.
func generated(t *testing.T, page, name, want string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin := "<!-- generated: " + name + " -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, ok2 := strings.Cut(rest, "<!-- end -->")
	if !ok || !ok2 {
		t.Fatalf("%s has no marks for %s", page, name)
	}
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s: the table of %s is not what the source says; run go test ./cmd/hbackup -update", page, name)
	}
	if err := os.WriteFile(page, []byte(before+begin+want+"<!-- end -->"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every module that the product imports is justified, and no other.
func TestDependenciesAreJustified(t *testing.T) {
	text, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	product, tests, _ := strings.Cut(string(text), "In tests alone:")
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
	listed := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(product, -1) {
		listed[m[1]] = false
	}
	for path := range imports(t, "../..", false) {
		if m := moduleOf(path, listed); m == "" {
			t.Errorf("%s is imported, and no module in docs/dependencies.md holds it", path)
		} else {
			listed[m] = true
		}
	}
	inTests := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(tests, -1) {
		inTests[m[1]] = false
	}
	for path := range imports(t, "../..", true) {
		if m := moduleOf(path, inTests); m != "" {
			inTests[m] = true
		} else if moduleOf(path, listed) == "" {
			t.Errorf("%s is imported by a test, and no module in docs/dependencies.md holds it", path)
		}
	}
	for _, list := range []map[string]bool{listed, inTests} {
		for m, used := range list {
			if !used {
				t.Errorf("%s is in docs/dependencies.md and not imported", m)
			}
		}
	}
}

// moduleOf gives the longest of the modules that holds the package.
func moduleOf(path string, modules map[string]bool) string {
	best := ""
	for m := range modules {
		if (path == m || strings.HasPrefix(path, m+"/")) && len(m) > len(best) {
			best = m
		}
	}
	return best
}

// imports gives the packages of other modules that the tree imports.
func imports(t *testing.T, root string, tests bool) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (file == filepath.Join(root, "e2e") || file != root && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") != tests {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
				found[path] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
