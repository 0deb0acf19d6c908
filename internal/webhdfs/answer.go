package webhdfs

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"hbackup"
	"hbackup/internal/files"
)

// maxAnswer bounds an answer of a name node. A page of a directory has some hundred
// bytes for each entry.
const maxAnswer = 64 << 20

// decode reads an answer, which must be one JSON value and no more.
func decode(r io.Reader, into any) error {
	limited := &io.LimitedReader{R: r, N: maxAnswer + 1}
	d := json.NewDecoder(limited)
	err := d.Decode(into)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			if err = end; end == nil {
				err = noWebHDFS(hbackup.Errorf("read answer", "", hbackup.KindUnsupported, "there is more behind it"))
			}
		}
	}
	if limited.N == 0 {
		return hbackup.Errorf("read answer", "", hbackup.KindUnsupported, "it is longer than %d bytes", maxAnswer)
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		return noWebHDFS(hbackup.E("read answer", "", hbackup.KindUnsupported, err))
	}
	return err
}

// fileStatus is WebHDFS's description of a file.
type fileStatus struct {
	PathSuffix       string `json:"pathSuffix"`
	Type             string `json:"type"`
	Length           int64  `json:"length"`
	ModificationTime int64  `json:"modificationTime"` // ms
	FileID           uint64 `json:"fileId"`           // 0 where the server does not tell it
}

// info checks the description of the file at p.
func (s *fileStatus) info(p string) (files.Info, error) {
	switch {
	case s.Type != "FILE" && s.Type != "DIRECTORY":
		return files.Info{}, hbackup.Errorf("read answer", "", hbackup.KindUnsupported, "%q is of the type %q", p, s.Type)
	case s.Length < 0:
		return files.Info{}, hbackup.Errorf("read answer", "", hbackup.KindUnsupported, "%q has the length %d", p, s.Length)
	}
	info := files.Info{Name: path.Base(p), Path: p, Dir: s.Type == "DIRECTORY", Modified: time.UnixMilli(s.ModificationTime).UTC(), ID: s.FileID}
	if !info.Dir {
		info.Size = s.Length
	}
	return info, nil
}

// readStatus reads the answer to GETFILESTATUS.
func readStatus(r io.Reader, p string) (files.Info, error) {
	var a struct {
		FileStatus *fileStatus `json:"FileStatus"`
	}
	if err := decode(r, &a); err != nil {
		return files.Info{}, err
	}
	if a.FileStatus == nil {
		return files.Info{}, noAnswer("FileStatus")
	}
	return a.FileStatus.info(p)
}

// readListing reads the answer to LISTSTATUS_BATCH and how many entries are left.
func readListing(r io.Reader, dir string) (infos []files.Info, left int, err error) {
	var a struct {
		DirectoryListing *struct {
			Remaining      int `json:"remainingEntries"`
			PartialListing *struct {
				FileStatuses *struct {
					FileStatus []fileStatus `json:"FileStatus"`
				} `json:"FileStatuses"`
			} `json:"partialListing"`
		} `json:"DirectoryListing"`
	}
	if err := decode(r, &a); err != nil {
		return nil, 0, err
	}
	l := a.DirectoryListing
	if l == nil || l.PartialListing == nil || l.PartialListing.FileStatuses == nil {
		return nil, 0, noAnswer("DirectoryListing")
	}
	statuses := l.PartialListing.FileStatuses.FileStatus
	if len(statuses) == 0 && l.Remaining != 0 || l.Remaining < 0 {
		return nil, 0, hbackup.Errorf("read answer", "", hbackup.KindUnsupported, "a page of %d entries is followed by %d", len(statuses), l.Remaining)
	}
	for i := range statuses {
		name := statuses[i].PathSuffix
		switch {
		case name == "" && len(statuses) == 1 && statuses[0].Type == "FILE":
			return nil, 0, errNoDirectory
		case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00"):
			return nil, 0, hbackup.Errorf("read answer", "", hbackup.KindUnsupported, "%q is no name in a directory", name)
		case statuses[i].Type == "SYMLINK":
			continue // no file of ours
		}
		info, err := statuses[i].info(path.Join(dir, name))
		if err != nil {
			return nil, 0, err
		}
		infos = append(infos, info)
	}
	return infos, l.Remaining, nil
}

var errNoDirectory = hbackup.Errorf("list", "", hbackup.KindConflict, "it is not a directory")

// readBool reads the answer to a call that says yes or no.
func readBool(r io.Reader) (bool, error) {
	var a struct {
		Boolean *bool `json:"boolean"`
	}
	if err := decode(r, &a); err != nil {
		return false, err
	}
	if a.Boolean == nil {
		return false, noAnswer("boolean")
	}
	return *a.Boolean, nil
}

func noAnswer(what string) error {
	return noWebHDFS(hbackup.Errorf("read answer", "", hbackup.KindUnsupported, "it has no %s", what))
}

// exception is how WebHDFS tells a Java exception.
type exception struct {
	Exception string `json:"exception"`
	ClassName string `json:"javaClassName"`
	Message   string `json:"message"`
}

func (x exception) class() string {
	if x.ClassName != "" {
		return x.ClassName
	}
	return x.Exception
}

// maxException bounds the text of an exception, with its trace.
const maxException = 1 << 20

func readException(b []byte) (x exception, ok bool) {
	var a struct {
		RemoteException *exception `json:"RemoteException"`
	}
	if json.Unmarshal(b, &a) != nil || a.RemoteException == nil {
		return x, false
	}
	return *a.RemoteException, a.RemoteException.class() != ""
}

// jsonAnswer reports whether an answer has a body that claims to be JSON.
func jsonAnswer(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")
}
