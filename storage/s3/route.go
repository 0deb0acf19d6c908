package s3

import (
	"context"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/auth"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// route is what all requests about the objects of a bucket have in common: where
// they go and how they are signed.
type route struct {
	endpoint url.URL // with the bucket in its host or path
	scheme   smithyhttp.AuthScheme
	keys     auth.IdentityResolver
	signing  smithy.Properties
	signBody bool // also the bytes of a body are signed
	do       smithyhttp.ClientDo
}

// newRoute finds the route with the SDK's own rules. It gives nil where that is not
// all there is to a request: buckets that are named by an ARN, those of S3 Express,
// other signatures than the usual one.
func newRoute(ctx context.Context, client *s3.Client, c Config) *route {
	o := client.Options()
	if o.EndpointResolver != nil || o.EndpointResolverV2 == nil || len(o.AuthSchemePreference) > 0 || o.UseAccelerate {
		return nil
	}
	at, err := o.EndpointResolverV2.ResolveEndpoint(ctx, s3.EndpointParameters{
		Bucket: &c.Bucket, Region: &o.Region, Endpoint: o.BaseEndpoint, ForcePathStyle: &o.UsePathStyle,
		UseFIPS:      aws.Bool(o.EndpointOptions.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled),
		UseDualStack: aws.Bool(o.EndpointOptions.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled),
		Accelerate:   aws.Bool(false), UseArnRegion: &o.UseARNRegion,
		DisableMultiRegionAccessPoints: &o.DisableMultiRegionAccessPoints, DisableS3ExpressSessionAuth: o.DisableS3ExpressSessionAuth,
	})
	if err != nil || len(at.Headers) > 0 || at.URI.RawPath != "" {
		return nil
	}
	r := &route{endpoint: at.URI, signBody: c.SignPayload, do: o.HTTPClient}
	smithyhttp.SetSigV4SigningName(&r.signing, "s3")
	smithyhttp.SetSigV4SigningRegion(&r.signing, o.Region)
	ways, _ := auth.GetAuthOptions(&at.Properties)
	if len(ways) != 1 || !strings.HasSuffix(auth.SchemeIDSigV4, ways[0].SchemeID) {
		return nil
	}
	r.signing.SetAll(&ways[0].SignerProperties)
	if name, _ := smithyhttp.GetSigV4SigningName(&r.signing); name != "s3" {
		return nil
	}
	for _, scheme := range o.AuthSchemes {
		if scheme.SchemeID() == auth.SchemeIDSigV4 {
			r.scheme, r.keys = scheme, scheme.IdentityResolver(o)
		}
	}
	if r.keys == nil || r.scheme.Signer() == nil {
		return nil
	}
	return r
}

// through gives the way of one operation, from the stack that the SDK has put
// together for it; nil when the stack is not what it is known to be.
func (r *route) through(name string, stack *middleware.Stack) *way {
	w := &way{route: r}
	var ok [2]bool
	w.serialize, ok[0] = stack.Serialize.Get("OperationSerializer")
	w.retry, ok[1] = stack.Finalize.Get("Retry")
	if !ok[0] || !ok[1] || !w.takeHeaders(name, stack.Build) {
		return nil
	}
	if w.expect, _ = stack.Build.Get("S3100Continue"); w.expect == nil {
		w.expect = nothing
	}
	w.answer = middleware.DeserializeHandler(sender{r.do})
	ids := stack.Deserialize.List()
	for i := len(ids) - 1; i >= 0; i-- {
		m, found := stack.Deserialize.Get(ids[i])
		if !found {
			return nil
		}
		switch ids[i] {
		case "RequestResponseLogger", "AWSChecksum:ValidateOutputPayloadChecksum", "AddRawResponseToMetadata":
			// which do nothing that is asked for
		case "S3:ProcessResponseFor200Error":
			w.answer = errorIn200{reading{m, w.answer}}
		case "OperationDeserializer":
			step := reading{m, w.answer}
			if w.answer = step; name == "PutObject" {
				w.answer = readPut{step}
			}
		default:
			w.answer = reading{m, w.answer}
		}
	}
	return w
}

// takeHeaders notes the headers that the stack gives to every request. All but the
// one that numbers them are always the same.
func (w *way) takeHeaders(name string, build *middleware.BuildStep) bool {
	req := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	ctx := awsmiddleware.SetOperationName(context.Background(), name)
	end := middleware.HandlerFunc(func(context.Context, any) (any, middleware.Metadata, error) {
		return nil, middleware.Metadata{}, nil
	})
	if _, _, err := build.HandleMiddleware(ctx, req, end); err != nil {
		return false
	}
	w.headers = req.Header
	w.headers.Del("Amz-Sdk-Invocation-Id")
	w.headers.Del("Expect")
	return true
}

var nothing = middleware.BuildMiddlewareFunc("Nothing", func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
	return next.HandleBuild(ctx, in)
})
