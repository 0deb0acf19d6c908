package config

import (
	"fmt"
	"strings"
)

// Tag is a tag of an object, written name=value.
type Tag struct{ Name, Value string }

// UnmarshalText reads name=value.
func (t *Tag) UnmarshalText(b []byte) error {
	name, value, ok := strings.Cut(string(b), "=")
	switch {
	case !ok || name == "":
		return hinted("write it as name=value", "%q is not a tag", b)
	case strings.HasPrefix(name, "aws:"):
		return hinted("choose another name", "tags that begin with aws: belong to AWS")
	case len(name) > 128 || len(value) > 256:
		return fmt.Errorf("the tag %.40q is too long; names have 128 bytes at most, values 256", name)
	}
	*t = Tag{name, value}
	return nil
}

// MarshalText writes name=value.
func (t Tag) MarshalText() ([]byte, error) { return []byte(t.Name + "=" + t.Value), nil }

// maxTags is what S3 takes.
const maxTags = 10

// checkS3 finds what is wrong between the keys that are about S3.
func (l *loader) checkS3(loc *Location, path string) {
	l.absolute(path+".credentials.role.token_file", loc.Credentials.Role.TokenFile)
	l.checkKey(loc.Credentials, path+".credentials")
	l.checkRole(loc.Credentials, path+".credentials.role")
	l.checkSSE(loc, path+".sse")
	l.checkTags(loc.Tags, path+".tags")
	if loc.UploadBuffers != 0 && loc.UploadBuffers < loc.PartSize {
		l.add(l.originOf(path+".upload_buffers"), path+".upload_buffers", "make it larger", "%s does not hold one part of %s", loc.UploadBuffers, loc.PartSize)
	}
}

func (l *loader) checkKey(c Credentials, path string) {
	add := func(hint, text string) { l.add(l.originOf(path), path, hint, "%s", text) }
	switch a, s, t := c.AccessKey.IsSet(), c.SecretKey.IsSet(), c.SessionToken.IsSet(); {
	case a && !s:
		add("set both or neither", "access_key is set without secret_key")
	case s && !a:
		add("set both or neither", "secret_key is set without access_key")
	case t && !a:
		add("set access_key and secret_key too", "session_token is set without access_key")
	case a && c.Profile != "":
		add("keep one of the two", "access_key and profile are both set")
	}
}

func (l *loader) checkRole(c Credentials, path string) {
	add := func(hint, text string) { l.add(l.originOf(path), path, hint, "%s", text) }
	r := c.Role
	switch {
	case r.ARN == "" && r != Role{}:
		add("set arn too", "settings of a role are there, but no arn")
	case r.TokenFile != "" && (c.AccessKey.IsSet() || c.Profile != ""):
		add("keep one of the two", "token_file needs no key, and a key or profile is set")
	case r.TokenFile != "" && r.ExternalID != "":
		add("keep one of the two", "token_file and external_id are both set")
	}
}

func (l *loader) checkSSE(loc *Location, path string) {
	sse := loc.SSE
	if sse.KMSKey != "" && sse.Mode != "kms" {
		l.add(l.originOf(path+".kms_key"), path+".kms_key", "set sse.mode to kms", "the key is set, but sse.mode is %s", sse.Mode)
	}
	key := path + ".customer_key"
	switch set := sse.CustomerKey.IsSet(); {
	case set && sse.Mode != "customer":
		l.add(l.originOf(key), key, "set sse.mode to customer", "the key is set, but sse.mode is %s", sse.Mode)
	case !set && sse.Mode == "customer":
		l.add(l.originOf(path+".mode"), key, "refer to it: {env: NAME} or {file: /path}", "sse.mode is customer, and there is no key")
	case set && strings.HasPrefix(string(loc.Endpoint), "http://"):
		l.add(l.originOf(key), key, "use an https endpoint", "the key would go over plain http")
	}
}

func (l *loader) checkTags(tags []Tag, path string) {
	names := map[string]bool{}
	for _, tag := range tags {
		if names[tag.Name] {
			l.add(l.originOf(path), path, "keep one of them", "there are two tags %s", tag.Name)
		}
		names[tag.Name] = true
	}
	if len(tags) > maxTags {
		l.add(l.originOf(path), path, "take some out", "there are %d tags; S3 takes %d", len(tags), maxTags)
	}
}
