package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// way is that of the requests of one operation. Its methods are the handlers of
// the SDK's steps, in the order in which a request passes them; none of them keeps
// anything of a request.
type way struct {
	*route
	headers   http.Header
	serialize middleware.SerializeMiddleware
	expect    middleware.BuildMiddleware
	retry     middleware.FinalizeMiddleware
	answer    middleware.DeserializeHandler
}

// run carries out one call.
func (w *way) run(ctx context.Context, in any) (any, middleware.Metadata, error) {
	out, meta, err := w.serialize.HandleSerialize(ctx, middleware.SerializeInput{Parameters: in, Request: smithyhttp.NewStackRequest()}, w)
	return out.Result, meta, err
}

// HandleSerialize takes over a request that says what is asked for, and adds where
// it goes.
func (w *way) HandleSerialize(ctx context.Context, in middleware.SerializeInput) (out middleware.SerializeOutput, meta middleware.Metadata, err error) {
	req, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return out, meta, fmt.Errorf("unexpected request of type %T", in.Request)
	}
	if req.URL.RawPath != "" {
		req.URL.RawPath = smithyhttp.JoinPath(w.endpoint.Path, req.URL.RawPath)
	}
	req.URL.Scheme, req.URL.Host, req.URL.Path = w.endpoint.Scheme, w.endpoint.Host, smithyhttp.JoinPath(w.endpoint.Path, req.URL.Path)
	for name, values := range w.headers {
		req.Header[name] = values[:len(values):len(values)]
	}
	hash := w.bodyHash(ctx, req)
	req.Header["X-Amz-Content-Sha256"] = []string{hash}
	built, meta, err := w.expect.HandleBuild(v4.SetPayloadHash(ctx, hash), middleware.BuildInput{Request: req}, w)
	return middleware.SerializeOutput{Result: built.Result}, meta, err
}

const unsignedBody = "UNSIGNED-PAYLOAD"

// noBody is the hash of no bytes.
var noBody = hashOf(nil)

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// bodyHash gives what the signature says of the body.
func (w *way) bodyHash(ctx context.Context, req *smithyhttp.Request) string {
	load := payloadOf(ctx)
	switch {
	case req.GetStream() == nil:
		return noBody
	case w.signBody && load != nil:
		return hashOf(load.data)
	}
	return unsignedBody
}

// HandleBuild begins with the attempts.
func (w *way) HandleBuild(ctx context.Context, in middleware.BuildInput) (middleware.BuildOutput, middleware.Metadata, error) {
	out, meta, err := w.retry.HandleFinalize(ctx, middleware.FinalizeInput{Request: in.Request}, w)
	return middleware.BuildOutput{Result: out.Result}, meta, err
}

// HandleFinalize signs an attempt and sends it.
func (w *way) HandleFinalize(ctx context.Context, in middleware.FinalizeInput) (out middleware.FinalizeOutput, meta middleware.Metadata, err error) {
	req, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return out, meta, fmt.Errorf("unexpected request of type %T", in.Request)
	}
	key, err := w.keys.GetIdentity(ctx, w.signing)
	if err != nil {
		return out, meta, fmt.Errorf("get identity: %w", err)
	}
	if err := w.scheme.Signer().SignRequest(ctx, req, key, w.signing); err != nil {
		return out, meta, fmt.Errorf("sign request: %w", err)
	}
	answer, meta, err := w.answer.HandleDeserialize(ctx, middleware.DeserializeInput{Request: req})
	return middleware.FinalizeOutput{Result: answer.Result}, meta, err
}

// reading is one of the steps that an answer passes, the last one first.
type reading struct {
	middleware.DeserializeMiddleware
	before middleware.DeserializeHandler
}

func (r reading) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput) (middleware.DeserializeOutput, middleware.Metadata, error) {
	return r.DeserializeMiddleware.HandleDeserialize(ctx, in, r.before)
}

// errorIn200 looks for an error in the body of an answer that is none by its status.
type errorIn200 struct{ reading }

func (e errorIn200) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, meta, err := e.before.HandleDeserialize(ctx, in)
	if resp, ok := out.RawResponse.(*smithyhttp.Response); err != nil || ok && resp.ContentLength == 0 {
		return out, meta, err
	}
	return e.DeserializeMiddleware.HandleDeserialize(ctx, in, given(out, meta, nil))
}

// readPut reads the answer to PutObject, of which two headers matter; the SDK's own
// step looks for twenty. What is no success is left to that.
type readPut struct{ reading }

func (r readPut) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, meta, err := r.before.HandleDeserialize(ctx, in)
	resp, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok || resp.StatusCode != http.StatusOK {
		return r.DeserializeMiddleware.HandleDeserialize(ctx, in, given(out, meta, err))
	}
	smithyhttp.CloseResponseBody(ctx, resp, false, nil)
	out.Result = &s3.PutObjectOutput{ETag: headerIn(resp, "Etag"), ChecksumCRC64NVME: headerIn(resp, "X-Amz-Checksum-Crc64nvme")}
	return out, meta, nil
}

// headerIn gives the value of a header, nil if the answer has none of that name.
func headerIn(resp *smithyhttp.Response, canonical string) *string {
	if values := resp.Header[canonical]; len(values) > 0 {
		return &values[0]
	}
	return nil
}

// given is the handler that gives what there is already.
func given(out middleware.DeserializeOutput, meta middleware.Metadata, err error) middleware.DeserializeHandler {
	return middleware.DeserializeHandlerFunc(func(context.Context, middleware.DeserializeInput) (middleware.DeserializeOutput, middleware.Metadata, error) {
		return out, meta, err
	})
}

// sender hands a request to the transport, as the SDK's last step does. That would
// copy the request, which is a copy of its attempt already.
type sender struct{ to smithyhttp.ClientDo }

func (s sender) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput) (out middleware.DeserializeOutput, meta middleware.Metadata, err error) {
	req, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return out, meta, fmt.Errorf("unexpected request of type %T", in.Request)
	}
	one := req.Request.WithContext(ctx)
	if stream := req.GetStream(); stream != nil && one.ContentLength != 0 {
		one.Body = io.NopCloser(stream)
	} else if one.ContentLength < 0 {
		one.ContentLength = 0
	}
	resp, err := s.to.Do(one)
	if err != nil {
		err = error(&smithyhttp.RequestSendError{Err: err})
		if ctx.Err() != nil {
			err = &smithy.CanceledError{Err: ctx.Err()}
		}
	}
	if resp == nil {
		resp = &http.Response{Header: http.Header{}, Body: http.NoBody}
	}
	return middleware.DeserializeOutput{RawResponse: &smithyhttp.Response{Response: resp}}, meta, err
}
