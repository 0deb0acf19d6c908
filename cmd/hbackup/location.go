package main

import (
	"context"
	"log/slog"
	"strings"

	"hbackup"
	"hbackup/config"
	"hbackup/storage"
	"hbackup/storage/file"
	"hbackup/storage/gcs"
	"hbackup/storage/hdfs"
	"hbackup/storage/s3"
)

// openLocation opens the store that a location describes.
func openLocation(ctx context.Context, loc *config.Location, log *slog.Logger) (storage.Store, error) {
	switch loc.URL.Scheme {
	case storage.SchemeFile:
		return file.Open(storage.Place{Scheme: storage.SchemeFile, Path: loc.URL.Path})
	case storage.SchemeHDFS:
		return hdfs.Open(storage.Place{Scheme: storage.SchemeHDFS, Host: loc.URL.Host, Path: loc.URL.Path}, hdfsConfig(loc, log))
	case storage.SchemeGS:
		return gcs.New(ctx, gcsConfig(loc))
	case storage.SchemeS3:
		return s3.New(ctx, s3Config(loc, log))
	}
	return nil, hbackup.Errorf("open location", loc.URL.String(), hbackup.KindUnsupported, "locations of the kind %s:// are not supported", loc.URL.Scheme)
}

func hdfsConfig(loc *config.Location, log *slog.Logger) hdfs.Config {
	cfg := hdfs.Config{
		NameNodes: addresses(loc.NameNodes), User: loc.User, Replication: loc.Replication, BlockSize: int64(loc.BlockSize),
		WebHDFS: addresses(loc.WebHDFS), CAFile: loc.CAFile, Log: log,
	}
	if loc.DelegationToken.IsSet() {
		cfg.DelegationToken = loc.DelegationToken.Read
	}
	return cfg
}

// smallestParts gives the smallest parts, in bytes, in which the stores of a
// scheme send an object, 0 for those that know no parts.
func smallestParts(scheme string) int64 {
	switch scheme {
	case storage.SchemeS3:
		return s3.MinPartSize
	case storage.SchemeGS:
		return gcs.MinChunkSize
	}
	return 0
}

func s3Config(loc *config.Location, log *slog.Logger) s3.Config {
	return s3.Config{
		Bucket:    loc.URL.Host,
		Prefix:    strings.TrimPrefix(loc.URL.Path, "/"),
		Region:    loc.Region,
		Endpoint:  string(loc.Endpoint),
		PathStyle: loc.PathStyle,
		CAFile:    loc.CAFile,
		Credentials: s3.Credentials{
			Profile:      loc.Credentials.Profile,
			AccessKey:    reference(loc.Credentials.AccessKey),
			SecretKey:    reference(loc.Credentials.SecretKey),
			SessionToken: reference(loc.Credentials.SessionToken),
			RoleARN:      loc.Credentials.Role.ARN,
			ExternalID:   loc.Credentials.Role.ExternalID,
			SessionName:  loc.Credentials.Role.SessionName,
			TokenFile:    loc.Credentials.Role.TokenFile,
			STSEndpoint:  string(loc.Credentials.Role.Endpoint),
		},
		StorageClass: loc.StorageClass,
		Encryption: map[string]s3.Encryption{
			"none": s3.EncryptionDefault, "aes256": s3.EncryptionSSES3, "kms": s3.EncryptionSSEKMS, "customer": s3.EncryptionSSEC,
		}[loc.SSE.Mode],
		KMSKey:        loc.SSE.KMSKey,
		CustomerKey:   reference(loc.SSE.CustomerKey),
		Tags:          tags(loc.Tags),
		RequesterPays: loc.RequesterPays,
		Checksum:      s3.Checksum(loc.Checksum),
		DeleteMD5:     loc.ContentMD5,
		SignPayload:   loc.SignPayload,
		PartSize:      int64(loc.PartSize),
		Parallel:      loc.ParallelParts,
		Memory:        int64(loc.UploadBuffers),
		Logger:        log,
	}
}

func tags(list []config.Tag) map[string]string {
	out := map[string]string{}
	for _, t := range list {
		out[t.Name] = t.Value
	}
	return out
}

func gcsConfig(loc *config.Location) gcs.Config {
	return gcs.Config{
		Bucket:          loc.URL.Host,
		Prefix:          strings.TrimPrefix(loc.URL.Path, "/"),
		Endpoint:        string(loc.Endpoint),
		CAFile:          loc.CAFile,
		CredentialsFile: loc.CredentialsFile,
		StorageClass:    loc.StorageClass,
		ChunkSize:       int64(loc.PartSize),
	}
}

// reference writes where a secret is in the words of package s3.
func reference(s config.Secret) string {
	switch {
	case s.Env != "":
		return "env:" + s.Env
	case s.File != "":
		return "file:" + s.File
	}
	return ""
}
