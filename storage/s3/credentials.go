package s3

import (
	"context"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"hbackup"
)

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
