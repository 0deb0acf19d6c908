package s3

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"net/url"
	"strings"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"hbackup"
)

// headers are what the configuration adds to requests of every kind, so that no
// request that needs one can be without it.
type headers []extraHeader

type extraHeader struct {
	name, value string
	in          string // operations, in S3's words, with a space on either side
}

const customerKeyHeader = "X-Amz-Server-Side-Encryption-Customer-Key"

const (
	// making are the operations that make objects.
	making = " PutObject CreateMultipartUpload "
	// withCustomerKey are those that write or read bytes, or describe them.
	withCustomerKey = " PutObject CreateMultipartUpload UploadPart CompleteMultipartUpload ListParts GetObject HeadObject "
	// withPayer are all on objects and listings.
	withPayer = withCustomerKey + " AbortMultipartUpload ListMultipartUploads ListObjectsV2 DeleteObject DeleteObjects "
)

var errKeyInTheOpen = hbackup.Errorf("send request", "", hbackup.KindUsage, "a customer's key would go over plain http").
	WithHint("use an https endpoint")

// headers reads the customer's key, if there is one.
func (c Config) headers() (headers, error) {
	var out headers
	if c.Encryption == EncryptionSSES3 || c.Encryption == EncryptionSSEKMS {
		out = append(out, extraHeader{"X-Amz-Server-Side-Encryption", string(c.Encryption), making})
	}
	if c.KMSKey != "" {
		out = append(out, extraHeader{"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id", c.KMSKey, making})
	}
	if len(c.Tags) > 0 {
		tags := url.Values{}
		for name, value := range c.Tags {
			tags.Set(name, value)
		}
		out = append(out, extraHeader{"X-Amz-Tagging", tags.Encode(), making})
	}
	if c.RequesterPays {
		out = append(out, extraHeader{"X-Amz-Request-Payer", "requester", withPayer})
	}
	if c.CustomerKey == "" {
		return out, nil
	}
	text, err := dereference(c.CustomerKey)
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != 32 {
		return nil, hbackup.Errorf("read credentials", c.CustomerKey, hbackup.KindUsage, "it does not hold a key of 32 bytes in base64").
			WithHint("make one with: openssl rand -base64 32")
	}
	sum := md5.Sum(key)
	const prefix = "X-Amz-Server-Side-Encryption-Customer-"
	return append(out,
		extraHeader{prefix + "Algorithm", "AES256", withCustomerKey},
		extraHeader{customerKeyHeader, text, withCustomerKey},
		extraHeader{prefix + "Key-Md5", base64.StdEncoding.EncodeToString(sum[:]), withCustomerKey},
	), nil
}

// add puts the headers of an operation into its requests, before they are signed.
func (h headers) add(stack *middleware.Stack) error {
	if len(h) == 0 {
		return nil
	}
	return stack.Build.Add(middleware.BuildMiddlewareFunc("hbackup:Headers", func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
		req, ok := in.Request.(*smithyhttp.Request)
		operation := " " + awsmiddleware.GetOperationName(ctx) + " "
		for _, header := range h {
			if ok && strings.Contains(header.in, operation) {
				req.Header.Set(header.name, header.value)
			}
		}
		return next.HandleBuild(ctx, in)
	}), middleware.After)
}
