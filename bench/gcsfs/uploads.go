package gcsfs

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"hbackup"
	"hbackup/bench"
)

// uploads are the multipart uploads of the XML API, one part each.
type uploads Target

// maxAnswer bounds an answer that is read whole.
const maxAnswer = 16 << 20

// do sends a request about an object, or the bucket when path is empty, and gives
// the answer's body and headers.
func (u *uploads) do(ctx context.Context, method, path, query string, body []byte) (text []byte, h http.Header, err error) {
	at := u.store.Endpoint() + "/" + u.name + "/"
	if path != "" {
		at += (&url.URL{Path: u.root + path}).EscapedPath()
	}
	req, err := http.NewRequestWithContext(ctx, method, at+"?"+query, bytes.NewReader(body))
	if err != nil {
		return nil, nil, u.fail(method, path, err)
	}
	resp, err := u.store.HTTPClient().Do(req)
	if err != nil {
		return nil, nil, u.fail(method, path, err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if text, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return nil, nil, u.fail(method, path, err)
	}
	if resp.StatusCode >= 300 {
		kind := hbackup.KindOther
		if resp.StatusCode == http.StatusNotFound {
			kind = hbackup.KindNotFound
		}
		var answer struct{ Code, Message string }
		_ = xml.Unmarshal(text, &answer) // without it the status says enough
		return nil, nil, hbackup.Errorf(strings.ToLower(method)+" upload of", "gs://"+u.name+"/"+u.root+path, kind, "%s %s %s", resp.Status, answer.Code, answer.Message)
	}
	return text, resp.Header, nil
}

func (u *uploads) fail(op, path string, err error) error {
	return (*Target)(u).fail(strings.ToLower(op)+" upload of", u.root+path, err)
}

// Begin creates an upload.
func (u *uploads) Begin(ctx context.Context, path string) (string, error) {
	text, _, err := u.do(ctx, http.MethodPost, path, "uploads", nil)
	if err != nil {
		return "", err
	}
	var answer struct{ UploadId string }
	if err := xml.Unmarshal(text, &answer); err != nil {
		return "", u.fail("begin", path, err)
	}
	return answer.UploadId, nil
}

// Part sends its one part.
func (u *uploads) Part(ctx context.Context, path, id string, data []byte) (string, error) {
	_, h, err := u.do(ctx, http.MethodPut, path, "partNumber=1&uploadId="+url.QueryEscape(id), data)
	return h.Get("ETag"), err
}

// Complete makes the object visible.
func (u *uploads) Complete(ctx context.Context, path, id, tag string) error {
	type part struct {
		PartNumber int
		ETag       string
	}
	body, err := xml.Marshal(struct {
		XMLName struct{} `xml:"CompleteMultipartUpload"`
		Part    []part
	}{Part: []part{{1, tag}}})
	if err != nil {
		return u.fail("complete", path, err)
	}
	_, _, err = u.do(ctx, http.MethodPost, path, "uploadId="+url.QueryEscape(id), body)
	return err
}

// Abort ends an upload; one that is gone is no error.
func (u *uploads) Abort(ctx context.Context, path, id string) error {
	_, _, err := u.do(ctx, http.MethodDelete, path, "uploadId="+url.QueryEscape(id), nil)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil
	}
	return err
}

// Open gives the first page of the open uploads below a directory.
func (u *uploads) Open(ctx context.Context, dir string) ([]bench.Upload, error) {
	prefix := u.root
	if dir != "" {
		prefix += dir + "/"
	}
	text, _, err := u.do(ctx, http.MethodGet, "", "uploads&prefix="+url.QueryEscape(prefix), nil)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Upload []struct{ Key, UploadId string }
	}
	if err := xml.Unmarshal(text, &answer); err != nil {
		return nil, u.fail("list", dir, err)
	}
	var all []bench.Upload
	for _, o := range answer.Upload {
		if strings.HasPrefix(o.Key, prefix) {
			all = append(all, bench.Upload{Path: strings.TrimPrefix(o.Key, u.root), ID: o.UploadId})
		}
	}
	return all, nil
}
