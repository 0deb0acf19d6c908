package s3

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// op is an operation that is asked for once an object or more often. The SDK puts
// some forty steps together for every call of its client, most of which come to
// the same each time: which endpoint, which way to sign, which headers. Here that
// is found out once, and a call runs through the SDK's own serializer, retries,
// signer and deserializer only.
type op[In, Out any] struct {
	name string
	way  *way // nil: every call goes through the client
	note func(*Out, middleware.Metadata)

	client ask[In, Out]
	opts   []option // of calls through the client
}

// ask is the method of the SDK's client.
type ask[In, Out any] = func(context.Context, *In, ...option) (*Out, error)

// operations are those of a store.
type operations struct {
	putObject  op[s3.PutObjectInput, s3.PutObjectOutput]
	uploadPart op[s3.UploadPartInput, s3.UploadPartOutput]
	getObject  op[s3.GetObjectInput, s3.GetObjectOutput]
	headObject op[s3.HeadObjectInput, s3.HeadObjectOutput]
}

func (s *Store) newOperations(r *route) operations {
	return operations{
		putObject: newOp(r, "PutObject", s.client.PutObject,
			func(out *s3.PutObjectOutput, m middleware.Metadata) { out.ResultMetadata = m }, s.unsigned()),
		uploadPart: newOp(r, "UploadPart", s.client.UploadPart,
			func(out *s3.UploadPartOutput, m middleware.Metadata) { out.ResultMetadata = m }, s.unsigned()),
		getObject: newOp(r, "GetObject", s.client.GetObject,
			func(out *s3.GetObjectOutput, m middleware.Metadata) { out.ResultMetadata = m }, s.wantChecksum()),
		headObject: newOp(r, "HeadObject", s.client.HeadObject,
			func(out *s3.HeadObjectOutput, m middleware.Metadata) { out.ResultMetadata = m }),
	}
}

var errTakenApart = errors.New("the stack was wanted, and no call")

// newOp takes the parts out of the SDK's own stack, which is put together
// for this and never run.
func newOp[In, Out any](r *route, name string, client ask[In, Out], note func(*Out, middleware.Metadata), opts ...option) op[In, Out] {
	o := op[In, Out]{name: name, note: note, client: client, opts: opts}
	if r == nil {
		return o
	}
	take := s3.WithAPIOptions(func(stack *middleware.Stack) error {
		o.way = r.through(name, stack)
		return errTakenApart
	})
	_, _ = client(context.Background(), new(In), append(opts[:len(opts):len(opts)], take)...)
	return o
}

// call is what the client's method is, errors included.
func (o *op[In, Out]) call(ctx context.Context, in *In) (*Out, error) {
	if o.way == nil {
		return o.client(ctx, in, o.opts...)
	}
	result, meta, err := o.way.run(ctx, in)
	if err != nil {
		return nil, &smithy.OperationError{ServiceID: s3.ServiceID, OperationName: o.name, Err: err}
	}
	out, ok := result.(*Out)
	if !ok {
		return nil, fmt.Errorf("%s: unexpected output of type %T", o.name, result)
	}
	o.note(out, meta)
	return out, nil
}
