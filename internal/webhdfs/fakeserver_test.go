package webhdfs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeHDFS is a name space that name nodes and data nodes over HTTP share. The real
// ones are tried in e2e/hdfsstore.
type fakeHDFS struct {
	mu     sync.Mutex
	nodes  map[string]*fakeFile // by path; no "/"
	lastID uint64
	calls  map[string]int // by op, at the name nodes
}

type fakeFile struct {
	id       uint64
	dir      bool
	data     []byte
	modified int64
}

func newFakeHDFS() *fakeHDFS {
	return &fakeHDFS{nodes: map[string]*fakeFile{}, calls: map[string]int{}}
}

// fakeNode is a name node with a data node, or a gateway.
type fakeNode struct {
	*httptest.Server
	fs      *fakeHDFS
	gateway bool
	// before may answer in the place of the server; after is asked when the call was
	// done, and may hide that.
	before, after func(op string, w http.ResponseWriter, r *http.Request) (answered bool)
	// data may serve the bytes instead.
	data func(w http.ResponseWriter, r *http.Request) (answered bool)
}

func (fs *fakeHDFS) start(t testing.TB, set ...func(*fakeNode)) *fakeNode {
	n := &fakeNode{fs: fs}
	for _, f := range set {
		f(n)
	}
	n.Server = httptest.NewServer(n)
	t.Cleanup(n.Server.Close)
	return n
}

func refuse(w http.ResponseWriter, status int, class, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"RemoteException": map[string]string{
		"exception": class, "javaClassName": "org.apache.hadoop." + class, "message": message + "\n\tat org.Somewhere"}})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	json.NewEncoder(w).Encode(v)
}

func (n *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p := strings.TrimPrefix(r.URL.Path, prefix)
	op := q.Get("op")
	if q.Get("data") != "" {
		if n.data == nil || !n.data(w, r) {
			n.serveData(w, r, op, p)
		}
		return
	}
	n.fs.mu.Lock()
	n.fs.calls[op]++
	n.fs.mu.Unlock()
	if n.before != nil && n.before(op, w, r) {
		return
	}
	if n.after == nil {
		n.serveName(w, r, op, p, q)
		return
	}
	hidden := httptest.NewRecorder()
	n.serveName(hidden, r, op, p, q)
	if !n.after(op, w, r) {
		for k, v := range hidden.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(hidden.Code)
		w.Write(hidden.Body.Bytes())
	}
}

func (n *fakeNode) serveName(w http.ResponseWriter, r *http.Request, op, p string, q url.Values) {
	if op == "CREATE" || op == "OPEN" && !n.gateway {
		q.Set("data", "true")
		to := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawQuery: q.Encode()}
		if !n.gateway {
			q.Set("data", "node")
			to.RawQuery = q.Encode()
		}
		w.Header().Set("Location", to.String())
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	if op == "OPEN" {
		n.serveData(w, r, op, p)
		return
	}
	fs := n.fs
	fs.mu.Lock()
	defer fs.mu.Unlock()
	p = fs.named(p)
	switch f := fs.nodes[p]; op {
	case "GETFILESTATUS":
		if f == nil {
			refuse(w, 404, "FileNotFoundException", "File does not exist: "+p)
			return
		}
		answer(w, map[string]any{"FileStatus": n.status("", f)})
	case "LISTSTATUS_BATCH":
		n.list(w, p, q.Get("startAfter"))
	case "MKDIRS":
		for up := p; up != "/"; up = path.Dir(up) {
			if fs.nodes[up] == nil {
				fs.add(up, true, nil)
			}
		}
		answer(w, map[string]bool{"boolean": true})
	case "DELETE":
		for q := range fs.nodes {
			if strings.HasPrefix(q, p+"/") {
				refuse(w, 403, "fs.PathIsNotEmptyDirectoryException", p+" is non empty")
				return
			}
		}
		delete(fs.nodes, p)
		answer(w, map[string]bool{"boolean": f != nil})
	case "RENAME":
		n.rename(w, p, q.Get("destination"), q.Get("renameoptions"))
	default:
		refuse(w, 400, "IllegalArgumentException", "Invalid value for webhdfs parameter \"op\"")
	}
}

// named gives the path of one that may be by number.
func (fs *fakeHDFS) named(p string) string {
	if id, ok := strings.CutPrefix(p, "/.reserved/.inodes/"); ok {
		for q, f := range fs.nodes {
			if strconv.FormatUint(f.id, 10) == id {
				return q
			}
		}
	}
	return p
}

func (fs *fakeHDFS) add(p string, dir bool, data []byte) *fakeFile {
	fs.lastID++
	f := &fakeFile{id: fs.lastID, dir: dir, data: data, modified: time.Now().UnixMilli()}
	fs.nodes[p] = f
	return f
}

func (n *fakeNode) status(name string, f *fakeFile) map[string]any {
	s := map[string]any{"pathSuffix": name, "type": "FILE", "length": len(f.data), "modificationTime": f.modified}
	if f.dir {
		s["type"] = "DIRECTORY"
	}
	if !n.gateway {
		s["fileId"] = f.id
	}
	return s
}

// fakeBatch is how many entries one answer has: less than a page.
const fakeBatch = 300

func (n *fakeNode) list(w http.ResponseWriter, dir, after string) {
	f := n.fs.nodes[dir]
	if f == nil && dir != "/" {
		refuse(w, 404, "FileNotFoundException", "File does not exist: "+dir)
		return
	}
	statuses := []map[string]any{}
	left := 0
	if f != nil && !f.dir {
		statuses = append(statuses, n.status("", f))
	} else {
		var names []string
		for p := range n.fs.nodes {
			if path.Dir(p) == dir && (n.gateway || signed(path.Base(p), after) > 0) {
				names = append(names, path.Base(p))
			}
		}
		slices.SortFunc(names, signed)
		if !n.gateway {
			left = max(0, len(names)-fakeBatch)
		}
		for _, name := range names[:len(names)-left] {
			statuses = append(statuses, n.status(name, n.fs.nodes[path.Join(dir, name)]))
		}
	}
	answer(w, map[string]any{"DirectoryListing": map[string]any{"remainingEntries": left,
		"partialListing": map[string]any{"FileStatuses": map[string]any{"FileStatus": statuses}}}})
}

// signed compares as the name node does.
func signed(a, b string) int {
	return slices.CompareFunc([]byte(a), []byte(b), func(x, y byte) int { return cmp.Compare(int8(x), int8(y)) })
}

func (n *fakeNode) rename(w http.ResponseWriter, from, to, options string) {
	nodes := n.fs.nodes
	f, there, parent := nodes[from], nodes[to], nodes[path.Dir(to)]
	move := func(to string) {
		nodes[to] = f
		delete(nodes, from)
	}
	if n.gateway {
		switch {
		case f == nil || parent == nil || there != nil && !there.dir:
			answer(w, map[string]bool{"boolean": false})
			return
		case there != nil:
			to = path.Join(to, path.Base(from))
		}
		move(to)
		answer(w, map[string]bool{"boolean": true})
		return
	}
	switch {
	case f == nil:
		refuse(w, 404, "FileNotFoundException", "rename source "+from+" is not found.")
	case parent == nil:
		refuse(w, 404, "FileNotFoundException", "rename destination parent "+path.Dir(to)+" not found.")
	case there != nil && (options != "OVERWRITE" || there.dir):
		refuse(w, 403, "fs.FileAlreadyExistsException", "rename destination "+to+" already exists")
	default:
		move(to)
		w.Header().Set("Content-Type", "application/octet-stream")
	}
}

func (n *fakeNode) serveData(w http.ResponseWriter, r *http.Request, op, p string) {
	fs := n.fs
	switch op {
	case "CREATE":
		fs.mu.Lock()
		if fs.nodes[p] != nil {
			fs.mu.Unlock()
			refuse(w, 403, "fs.FileAlreadyExistsException", p+" already exists")
			return
		}
		f := fs.add(p, false, nil)
		fs.mu.Unlock()
		data, err := io.ReadAll(r.Body) // a data node keeps what it got, like this one
		fs.mu.Lock()
		f.data = data
		fs.mu.Unlock()
		if err == nil {
			w.WriteHeader(http.StatusCreated)
		}
	case "OPEN":
		fs.mu.Lock()
		f := fs.nodes[fs.named(p)]
		fs.mu.Unlock()
		if f == nil {
			refuse(w, 404, "FileNotFoundException", "File does not exist: "+p)
			return
		}
		offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
		if !n.gateway {
			w.Header().Set("Content-Length", fmt.Sprint(len(f.data)-offset))
		}
		w.Write(f.data[offset:])
	}
}
