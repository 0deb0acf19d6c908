package main

import (
	"log/slog"
	"reflect"
	"testing"

	"hbackup/config"
)

// Whatever the store of S3 can be told is told by some key of a location.
func TestEverySettingOfS3HasAKey(t *testing.T) {
	env := func(name string) config.Secret { return config.Secret{Env: name} }
	got := s3Config(&config.Location{
		URL: config.URL{Scheme: "s3", Host: "bucket", Path: "/prefix"}, Endpoint: "https://x", Region: "r", PathStyle: true, CAFile: "/ca",
		Credentials: config.Credentials{
			AccessKey: env("A"), SecretKey: env("B"), SessionToken: env("C"), Profile: "p",
			Role: config.Role{ARN: "arn", ExternalID: "e", SessionName: "s", TokenFile: "/t", Endpoint: "https://sts"},
		},
		StorageClass: "STANDARD_IA", SSE: config.SSE{Mode: "customer", KMSKey: "k", CustomerKey: env("D")}, Tags: []config.Tag{{Name: "a", Value: "b"}},
		PartSize: 1, ParallelParts: 2, UploadBuffers: 3, RequesterPays: true, Checksum: "md5", ContentMD5: true, SignPayload: true,
	}, slog.Default())
	fixed := map[string]bool{
		"MaxAttempts": true, // as many as the store finds right
		"Wrap":        true, // for programs that watch the requests
	}
	for _, v := range []reflect.Value{reflect.ValueOf(got), reflect.ValueOf(got.Credentials)} {
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && v.Field(i).IsZero() && !fixed[f.Name] {
				t.Errorf("no key sets %s of %s", f.Name, v.Type())
			}
		}
	}
}
