package s3

import (
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// option is a setting of a single request.
type option = func(*s3.Options)

// unsigned leaves the body's SHA-256 out of the signature, also on plain http.
func (s *Store) unsigned() option {
	if s.c.SignPayload {
		return s3.WithAPIOptions(signedPayload)
	}
	return s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
}

// signedPayload puts it in, also under TLS.
func signedPayload(stack *middleware.Stack) error {
	_, err := stack.Finalize.Swap("ComputePayloadHash", &v4.ComputePayloadSHA256{})
	return err
}

// wantChecksum asks for the checksum of the object with its bytes. The SDK has a
// field for it, but would then check the bytes with a slow CRC of its own.
func (s *Store) wantChecksum() option {
	if s.c.Checksum != ChecksumCRC64NVME {
		return func(*s3.Options) {}
	}
	return s3.WithAPIOptions(smithyhttp.SetHeaderValue("X-Amz-Checksum-Mode", "ENABLED"))
}

// contentMD5 adds the header to a request with a small body, in place of the
// SDK's own checksum.
func contentMD5(stack *middleware.Stack) error {
	if _, err := stack.Finalize.Remove("AWSChecksum:ComputeInputPayloadChecksum"); err != nil {
		return err
	}
	return smithyhttp.AddContentChecksumMiddleware(stack)
}

// dateIn gives the store's clock at the time of an answer.
func dateIn(m middleware.Metadata) (time.Time, bool) { return awsmiddleware.GetServerTime(m) }
