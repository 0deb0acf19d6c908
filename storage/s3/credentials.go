package s3

import (
	"context"
	"crypto/x509"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"hbackup"
)

// expiryWindow is how long before its end a temporary key is replaced.
const expiryWindow = 5 * time.Minute

// loadConfig gives the SDK's configuration with its credentials. It sets the
// region in c to the one that is used. The authorities are for the services that
// hand out keys.
func loadConfig(ctx context.Context, c *Config, authorities *x509.CertPool) (aws.Config, error) {
	client := awshttp.NewBuildableClient()
	if authorities != nil {
		client = client.WithTransportOptions(func(t *http.Transport) { t.TLSClientConfig.RootCAs = authorities })
	}
	opts := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithDefaultRegion(DefaultRegion), awsconfig.WithLogger(sdkLogger{c.Logger}), awsconfig.WithHTTPClient(client),
		awsconfig.WithCredentialsCacheOptions(func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = expiryWindow }),
	}
	if c.Region != "" {
		opts = append(opts, awsconfig.WithRegion(c.Region))
	}
	if c.Credentials.Profile != "" {
		opts = append(opts, awsconfig.WithSharedConfigProfile(c.Credentials.Profile))
	}
	if c.Credentials.AccessKey != "" {
		opts = append(opts, awsconfig.WithCredentialsProvider(references{c.Credentials}))
	}
	base, err := awsconfig.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return aws.Config{}, hbackup.E("load AWS configuration", string(c.Location()), hbackup.KindUsage, err)
	}
	c.Region = base.Region
	if c.Credentials.RoleARN != "" {
		base.Credentials = aws.NewCredentialsCache(c.Credentials.role(base), func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = expiryWindow })
	}
	return base, nil
}

// role gives the provider of the role's keys.
func (c Credentials) role(base aws.Config) aws.CredentialsProvider {
	service := sts.NewFromConfig(base, func(o *sts.Options) {
		if c.STSEndpoint != "" {
			o.BaseEndpoint = &c.STSEndpoint
		}
	})
	name := c.SessionName
	if name == "" {
		name = "hbackup"
	}
	if c.TokenFile != "" {
		return stscreds.NewWebIdentityRoleProvider(service, c.RoleARN, stscreds.IdentityTokenFile(c.TokenFile),
			func(o *stscreds.WebIdentityRoleOptions) { o.RoleSessionName = name })
	}
	return stscreds.NewAssumeRoleProvider(service, c.RoleARN, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = name
		if c.ExternalID != "" {
			o.ExternalID = &c.ExternalID
		}
	})
}

// references is a credentials provider that reads a static key from where its
// references point, each time it is asked.
type references struct{ c Credentials }

var _ aws.CredentialsProvider = references{}

// Retrieve reads the key. Its errors name the reference, never what it holds.
func (r references) Retrieve(context.Context) (aws.Credentials, error) {
	out := aws.Credentials{Source: "hbackup"}
	for _, part := range []struct {
		ref string
		to  *string
	}{
		{r.c.AccessKey, &out.AccessKeyID},
		{r.c.SecretKey, &out.SecretAccessKey},
		{r.c.SessionToken, &out.SessionToken},
	} {
		if part.ref == "" {
			continue
		}
		v, err := dereference(part.ref)
		if err != nil {
			return aws.Credentials{}, err
		}
		*part.to = v
	}
	return out, nil
}

func isReference(s string) bool {
	kind, name, ok := strings.Cut(s, ":")
	return ok && name != "" && (kind == "env" || kind == "file")
}

// dereference gives the value behind "env:NAME" or "file:/path", without white
// space around it.
func dereference(ref string) (string, error) {
	kind, name, _ := strings.Cut(ref, ":")
	value := ""
	switch kind {
	case "env":
		value = os.Getenv(name)
	case "file":
		b, err := os.ReadFile(name)
		if err != nil {
			return "", hbackup.E("read credentials", ref, hbackup.KindDenied, err).
				WithHint("let the user who runs hbackup read the file")
		}
		value = string(b)
	}
	if value = strings.TrimSpace(value); value == "" {
		return "", hbackup.Errorf("read credentials", ref, hbackup.KindDenied, "there is nothing in it").
			WithHint("put the key there or point the configuration elsewhere")
	}
	return value, nil
}
