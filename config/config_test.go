package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hbackup"
)

// whole is a configuration that sets nearly every key.
const whole = `version: 1
clusters:
  prod:
    registry: {zookeeper: [zk1, "zk2:2182"], znode: /hbase}
    root: hdfs://nn1:8020/hbase/
    user: hbase
    target: main
    history: [old]
    snapshot_ttl: 3d
  dr:
    registry:
      masters: [m1:16000, m2]
    root: hdfs://dr/hbase
    namenodes: [nn1, nn2]
    wal: hdfs://dr/wal
    target: main
locations:
  main:
    url: s3://bucket/prefix/
    endpoint: http://localhost:9000/
    region: eu-central-1
    path_style: true
    credentials:
      access_key: {env: TEST_ACCESS_KEY}
      secret_key: {file: /nonexistent/secret}
    storage_class: STANDARD_IA
    sse: {mode: kms, kms_key: alias/x}
    part_size: 32MiB
    limits: {upload: 50MiB/s, download: 100MiB/s, requests: 200, concurrency: 16}
    tags: [team=h base, env=]
    parallel_parts: 6
    upload_buffers: 1GiB
    requester_pays: true
    checksum: md5
    content_md5: true
    sign_payload: true
  aws:
    url: s3://other-bucket
    credentials: {profile: backup, role: {arn: "arn:aws:iam::1:role/x", external_id: e, session_name: s, endpoint: "https://sts.example.org"}}
    sse: {mode: customer, customer_key: {file: /nonexistent/key}}
  old: {url: "file:///srv/backup"}
  spare: {url: "file:///srv/spare"}
  dfs: {url: "hdfs://ns/backup", namenodes: [nn8, "nn9:9000"], user: backup, replication: 2, block_size: 256MiB, webhdfs: ["https://nn8:9871", "https://nn9"], delegation_token: {file: /nonexistent/token}}
  gcs: {url: "gs://my_bucket.example/prefix", credentials_file: /etc/gcs.json, storage_class: NEARLINE, part_size: 8MiB}
copy: {concurrency: 4, verify_hfile_checksums: false}
log: {level: debug, format: json}
`

// minimal is the least that is valid.
const minimal = `version: 1
clusters:
  prod:
    registry: {zookeeper: [zk1]}
    root: hdfs://nn1/hbase
    target: main
locations:
  main: {url: "s3://bucket"}
`

// load parses the text as /etc/hb.yaml.
func load(text string, env []string, set ...Override) (*Config, error) {
	if env == nil {
		env = []string{}
	}
	return parse("/etc/hb.yaml", []byte(text), LoadOptions{Environ: env, Set: set, OSUser: func() (string, error) { return "op", nil }})
}

func mustLoad(t *testing.T, text string, env []string, set ...Override) *Config {
	t.Helper()
	c, err := load(text, env, set...)
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(found(err), "\n"))
	}
	return c
}

// found gives each problem as "origin: key: message; hint".
func found(err error) []string {
	var e *Error
	if !errors.As(err, &e) {
		return []string{err.Error()}
	}
	var all []string
	for _, p := range e.Problems {
		all = append(all, withHint(p))
	}
	return all
}

func withHint(p Problem) string {
	if p.Hint == "" {
		return p.String()
	}
	return p.String() + "; " + p.Hint
}

func set(key, value string) Override { return Override{Key: key, Value: value, Flag: "--set " + key} }

func TestEveryKeyIsRead(t *testing.T) {
	c := mustLoad(t, whole, nil)
	prod, err := c.Cluster("prod")
	if err != nil {
		t.Fatal(err)
	}
	wantProd := &Cluster{
		Name:             "prod",
		Registry:         Registry{ZooKeeper: []HostPort{"zk1:2181", "zk2:2182"}, ZNode: "/hbase"},
		Root:             URL{"hdfs", "nn1:8020", "/hbase"},
		WAL:              URL{"hdfs", "nn1:8020", "/hbase"},
		User:             "hbase",
		Tables:           Tables{Include: []hbackup.TablePattern{"*"}},
		Target:           "main",
		History:          []LocationName{"old"},
		Reference:        "own",
		Snapshots:        2,
		SnapshotTTL:      72 * time.Hour,
		TableWait:        time.Minute,
		OperationTimeout: 30 * time.Minute,
	}
	if !reflect.DeepEqual(prod, wantProd) {
		t.Errorf("prod\ngot  %+v\nwant %+v", prod, wantProd)
	}
	dr, _ := c.Cluster("dr")
	wantDR := &Cluster{
		Name:             "dr",
		Registry:         Registry{Masters: []HostPort{"m1:16000", "m2:16000"}, ZNode: "/hbase"},
		Root:             URL{"hdfs", "dr", "/hbase"},
		NameNodes:        []HostPort{"nn1:8020", "nn2:8020"},
		WAL:              URL{"hdfs", "dr", "/wal"},
		User:             "op",
		Tables:           Tables{Include: []hbackup.TablePattern{"*"}},
		Target:           "main",
		Reference:        "own",
		Snapshots:        2,
		SnapshotTTL:      72 * time.Hour,
		TableWait:        time.Minute,
		OperationTimeout: 30 * time.Minute,
	}
	if !reflect.DeepEqual(dr, wantDR) {
		t.Errorf("dr\ngot  %+v\nwant %+v", dr, wantDR)
	}
	wantMain := &Location{
		Name:         "main",
		URL:          URL{"s3", "bucket", "/prefix"},
		Endpoint:     "http://localhost:9000",
		Region:       "eu-central-1",
		PathStyle:    true,
		Credentials:  Credentials{AccessKey: Secret{Env: "TEST_ACCESS_KEY"}, SecretKey: Secret{File: "/nonexistent/secret"}},
		StorageClass: "STANDARD_IA",
		SSE:          SSE{Mode: "kms", KMSKey: "alias/x"},
		PartSize:     32 << 20,
		Committer:    "auto",
		RetryFor:     15 * time.Second, // of no meaning here
		Limits:       Limits{Upload: 50 << 20, Download: 100 << 20, Requests: 200, Concurrency: 16},
		Tags:         []Tag{{"team", "h base"}, {"env", ""}}, ParallelParts: 6, UploadBuffers: 1 << 30,
		RequesterPays: true, Checksum: "md5", ContentMD5: true, SignPayload: true,
	}
	if got := c.Locations["main"]; !reflect.DeepEqual(got, wantMain) {
		t.Errorf("main\ngot  %+v\nwant %+v", got, wantMain)
	}
	wantAWS := &Location{
		Name: "aws",
		URL:  URL{"s3", "other-bucket", ""},
		Credentials: Credentials{Profile: "backup", Role: Role{
			ARN: "arn:aws:iam::1:role/x", ExternalID: "e", SessionName: "s", Endpoint: "https://sts.example.org"}},
		SSE:       SSE{Mode: "customer", CustomerKey: Secret{File: "/nonexistent/key"}},
		Committer: "auto", PartSize: 16 << 20,
		ParallelParts: 4, Checksum: "crc64nvme",
		RetryFor: 15 * time.Second,
	}
	if got := c.Locations["aws"]; !reflect.DeepEqual(got, wantAWS) {
		t.Errorf("aws\ngot  %+v\nwant %+v", got, wantAWS)
	}
	wantDFS := &Location{
		Name:        "dfs",
		URL:         URL{"hdfs", "ns", "/backup"},
		SSE:         SSE{Mode: "none"},
		PartSize:    16 << 20,
		Committer:   "auto", // of no meaning here
		NameNodes:   []HostPort{"nn8:8020", "nn9:9000"},
		User:        "backup",
		Replication: 2,
		BlockSize:   256 << 20,
		WebHDFS:     []WebAddress{"https://nn8:9871", "https://nn9"},

		DelegationToken: Secret{File: "/nonexistent/token"},
		RetryFor:        15 * time.Second,
		ParallelParts:   4, Checksum: "crc64nvme", // of no meaning here
	}
	if got := c.Locations["dfs"]; !reflect.DeepEqual(got, wantDFS) {
		t.Errorf("dfs\ngot  %+v\nwant %+v", got, wantDFS)
	}
	wantGCS := &Location{
		Name:            "gcs",
		URL:             URL{"gs", "my_bucket.example", "/prefix"},
		CredentialsFile: "/etc/gcs.json",
		StorageClass:    "NEARLINE",
		SSE:             SSE{Mode: "none"},
		PartSize:        8 << 20,
		Committer:       "auto",
		RetryFor:        15 * time.Second,
		ParallelParts:   4, Checksum: "crc64nvme",
	}
	if got := c.Locations["gcs"]; !reflect.DeepEqual(got, wantGCS) {
		t.Errorf("gcs\ngot  %+v\nwant %+v", got, wantGCS)
	}
	if want := (Copy{Concurrency: 4, Tables: 2}); c.Copy != want {
		t.Errorf("copy %+v", c.Copy)
	}
	if want := (Log{Level: "debug", Format: "json"}); c.Log != want {
		t.Errorf("log %+v", c.Log)
	}
	if got := c.LocationsOf(prod); len(got) != 2 || got[0].Name != "main" || got[1].Name != "old" {
		t.Errorf("LocationsOf gives %v", got)
	}
}

// Moving to another location is one change when the history names both.
func TestTargetMayBeInTheHistory(t *testing.T) {
	for target, want := range map[string][2]LocationName{"main": {"main", "old"}, "old": {"old", "main"}} {
		c := mustLoad(t, whole, nil, set("clusters.prod.history", "main,old"), set("clusters.prod.target", target))
		got := c.LocationsOf(c.Clusters["prod"])
		if len(got) != 2 || got[0].Name != want[0] || got[1].Name != want[1] {
			t.Errorf("target %s: %v", target, got)
		}
	}
}

func TestUnknownClusterIsNotFound(t *testing.T) {
	_, err := mustLoad(t, whole, nil).Cluster("prd")
	if hbackup.KindOf(err) != hbackup.KindNotFound || err.Error() != "find cluster prd: /etc/hb.yaml defines no such cluster" || hbackup.HintOf(err) != "it defines: dr, prod" {
		t.Errorf("%v; %s", err, hbackup.HintOf(err))
	}
}

func TestLaterLayersWin(t *testing.T) {
	const key = "copy.concurrency"
	for _, c := range []struct {
		name   string
		text   string
		env    []string
		set    []Override
		want   int
		origin string
	}{
		{"default", minimal, nil, nil, 8, "default"},
		{"file", minimal + "copy: {concurrency: 2}\n", nil, nil, 2, "/etc/hb.yaml:9"},
		{"env", minimal + "copy: {concurrency: 2}\n", []string{"HBACKUP_COPY_CONCURRENCY=3"}, nil, 3, "env HBACKUP_COPY_CONCURRENCY"},
		{"flag", minimal + "copy: {concurrency: 2}\n", []string{"HBACKUP_COPY_CONCURRENCY=3"}, []Override{set(key, "4")}, 4, "flag --set copy.concurrency"},
		{"last flag", minimal, nil, []Override{set(key, "4"), set(key, "5")}, 5, "flag --set copy.concurrency"},
		{"empty variable is none", minimal, []string{"HBACKUP_COPY_CONCURRENCY="}, nil, 8, "default"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := mustLoad(t, c.text, c.env, c.set...)
			if cfg.Copy.Concurrency != c.want {
				t.Errorf("got %d, want %d", cfg.Copy.Concurrency, c.want)
			}
			if got := valueOf(t, cfg, key).Origin.String(); got != c.origin {
				t.Errorf("origin %q, want %q", got, c.origin)
			}
		})
	}
}

func valueOf(t *testing.T, c *Config, path string) Value {
	t.Helper()
	for _, v := range c.Values() {
		if v.Path == path {
			return v
		}
	}
	t.Fatalf("no value %s", path)
	return Value{}
}

// Every key that holds a value can be set by a variable and by a flag.
func TestEveryKeyCanBeOverridden(t *testing.T) {
	other := map[string]string{
		"version": "1", "clusters.prod.registry.zookeeper": "zk8,zk9:1", "clusters.prod.registry.masters": "",
		"clusters.prod.root": "hdfs://other/dir", "clusters.prod.namenodes": "nna,nnb", "clusters.prod.wal": "hdfs://other/wal",
		"clusters.prod.registry.znode": "/z", "clusters.prod.target": "spare", "clusters.prod.history": "spare",
		"clusters.prod.max_age": "26h", "clusters.prod.snapshots": "3", "clusters.prod.snapshot_ttl": "20m", "clusters.prod.table_wait": "3m", "clusters.prod.operation_timeout": "2m",
		"locations.main.url": "s3://other", "locations.main.endpoint": "https://x", "locations.main.path_style": "false",
		"locations.main.ca_file": "/ca", "locations.main.sse.mode": "kms", "locations.main.part_size": "7MiB", "locations.main.committer": "deferred", "clusters.prod.reference": "any",
		"locations.main.credentials.access_key.file": "/key", "locations.main.credentials.secret_key.file": "/key",
		"locations.main.credentials.session_token.file": "/key", "locations.old.url": "file:///x",
		"locations.gcs.credentials_file": "/key", "locations.dfs.namenodes": "nna,nnb", "locations.dfs.replication": "3", "locations.dfs.block_size": "64MiB",
		"locations.dfs.webhdfs": "https://nna:9871,https://nnb:9871", "locations.dfs.delegation_token.file": "/key",
		"locations.main.limits.upload": "1MiB/s", "locations.main.limits.download": "2MiB/s", "locations.main.limits.requests": "7", "locations.main.limits.concurrency": "8",
		"locations.old.retry_for": "2m", "log.trace_store": "/t",
		"locations.main.tags": "a=b,c=d", "locations.main.parallel_parts": "7", "locations.main.upload_buffers": "2GiB", "locations.main.requester_pays": "false",
		"locations.main.checksum": "none", "locations.main.content_md5": "false", "locations.main.sign_payload": "false",
		"locations.aws.credentials.role.token_file": "", "locations.aws.credentials.role.endpoint": "https://x", "locations.aws.sse.customer_key.file": "/key",
		"copy.concurrency": "9", "copy.tables": "3", "copy.verify_hfile_checksums": "true", "index.enabled": "false", "index.directory": "/index", "log.level": "warn", "log.format": "text",
	}
	l := &loader{names: map[string][]string{"clusters": {"prod"}, "locations": {"main"}}}
	n := 0
	l.eachKey(schema(), "", func(path string, node *node) {
		if node.shape == shapeSecret {
			return
		}
		n++
		only := node.tag.Get("only")
		if strings.Contains(path, ".delegation_token.") {
			only = "hdfs" // as its parent
		}
		for _, part := range []string{".credentials.profile", ".credentials.role.", ".sse.customer_key"} {
			if strings.Contains(path, part) {
				only = "s3 without a key"
			}
		}
		switch only {
		case "s3 without a key":
			path = strings.Replace(path, "main", "aws", 1)
		case "hdfs":
			path = strings.Replace(path, "main", "dfs", 1)
		case "file":
			path = strings.Replace(path, "main", "old", 1)
		case "gs":
			path = strings.Replace(path, "main", "gcs", 1)
		}
		value, ok := other[path]
		if !ok {
			value = "text-of-a-test"
		}
		if value == "" {
			return
		}
		for _, way := range []string{"env", "flag"} {
			var c *Config
			var want string
			if way == "env" {
				want = "env " + EnvName(path)
				c = mustLoad(t, whole, []string{EnvName(path) + "=" + value})
			} else {
				want = "flag --set " + path
				c = mustLoad(t, whole, nil, set(path, value))
			}
			shown := strings.TrimSuffix(strings.TrimSuffix(path, ".env"), ".file")
			v := valueOf(t, c, shown)
			if v.Origin.String() != want {
				t.Errorf("%s by %s: origin %s", path, way, v.Origin)
			}
			if !v.Secret && v.Text != value && !strings.HasPrefix(v.Text, value[:2]) {
				t.Errorf("%s by %s: is %s", path, way, v.Text)
			}
		}
	})
	if n < 30 {
		t.Errorf("only %d keys were tried", n)
	}
}

func TestFlagsCanDefineALocation(t *testing.T) {
	c := mustLoad(t, minimal, []string{"HBACKUP_LOCATIONS_NEW_URL=s3://from-env"},
		set("locations.new.url", "s3://from-flag"), set("clusters.prod.target", "new"))
	if got := c.Locations["new"].URL.String(); got != "s3://from-flag" {
		t.Errorf("url %s", got)
	}
	c = mustLoad(t, minimal, []string{"HBACKUP_LOCATIONS_NEW_REGION=r"}, set("locations.new.url", "s3://from-flag"))
	if got := c.Locations["new"].Region; got != "r" {
		t.Errorf("a variable cannot change a location that a flag defines: %q", got)
	}
}

func TestReferenceToASecretIsReplacedAsAWhole(t *testing.T) {
	c := mustLoad(t, whole, nil, set("locations.main.credentials.access_key.file", "/key"))
	if got, want := c.Locations["main"].Credentials.AccessKey, (Secret{File: "/key"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestSecretNeverShows(t *testing.T) {
	t.Setenv("TEST_ACCESS_KEY", "hunter2hunter2")
	c := mustLoad(t, whole, nil)
	for _, v := range c.Values() {
		if strings.Contains(v.Text, "hunter2") {
			t.Errorf("%s shows the secret", v.Path)
		}
	}
	if got := valueOf(t, c, "locations.main.credentials.access_key").Text; got != "(set, from env TEST_ACCESS_KEY)" {
		t.Errorf("got %q", got)
	}
	if got := valueOf(t, c, "locations.main.credentials.secret_key").Text; got != "(missing, from file /nonexistent/secret)" {
		t.Errorf("got %q", got)
	}
	if got, err := c.Locations["main"].Credentials.AccessKey.Read(); got != "hunter2hunter2" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSecretFromFile(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) Secret {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return Secret{File: p}
	}
	if got, err := file("good", "  s3cret \r\n").Read(); got != "  s3cret " || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for name, s := range map[string]Secret{
		"empty":       file("empty", "\n"),
		"long":        file("long", strings.Repeat("x", maxSecret+1)),
		"missing":     {File: filepath.Join(dir, "none")},
		"a directory": {File: dir},
		"no variable": {Env: "HBACKUP_NO_SUCH_VARIABLE"},
		"nothing":     {},
	} {
		if got, err := s.Read(); got != "" || hbackup.KindOf(err) != hbackup.KindDenied {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestFindFile(t *testing.T) {
	dir := t.TempDir()
	here, there := filepath.Join(dir, "here.yaml"), filepath.Join(dir, "there.yaml")
	opts := LoadOptions{Environ: []string{}, SearchPaths: []string{here, there}, OSUser: func() (string, error) { return "op", nil }}
	_, err := Load(opts)
	if want := "read configuration: no file found; looked for " + here + ", " + there; err == nil || err.Error() != want || hbackup.KindOf(err) != hbackup.KindUsage {
		t.Errorf("%v", err)
	}
	for _, p := range []string{there, here} {
		if err := os.WriteFile(p, []byte(minimal), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(opts)
		if err != nil || c.File != p {
			t.Errorf("want %s: %v, %v", p, c, err)
		}
	}
	opts.Environ = []string{"HBACKUP_CONFIG=" + there}
	if c, err := Load(opts); err != nil || c.File != there {
		t.Errorf("HBACKUP_CONFIG: %v, %v", c, err)
	}
	opts.Path = filepath.Join(dir, "flag.yaml")
	if _, err := Load(opts); err == nil || err.Error() != "read configuration "+opts.Path+": no such file or directory" {
		t.Errorf("%v", err)
	}
}

func TestSizeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Size(rapid.Int64Min(0).Draw(t, "size"))
		var got Size
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Fatalf("%s: %d, %v", want, got, err)
		}
	})
}

func TestDurationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64Min(0).Draw(t, "d"))
		got, err := parseDuration(formatDuration(want))
		if err != nil || got != want {
			t.Fatalf("%s: %s, %v", formatDuration(want), got, err)
		}
	})
	for s, want := range map[string]time.Duration{"3d": 72 * time.Hour, "1d12h": 36 * time.Hour, "90s": 90 * time.Second, "0s": 0} {
		if got, err := parseDuration(s); got != want || err != nil {
			t.Errorf("%s: %s, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "d", "3", "-1h", "1d25h", "1dd", "-1d", "99999999d"} {
		if got, err := parseDuration(s); err == nil {
			t.Errorf("%q is read as %s", s, got)
		}
	}
}

// Every default and limit in the tags can be read by the type of its field.
func TestTagsFitTheirTypes(t *testing.T) {
	schema().eachPattern("", func(path string, n *node) {
		if n.key != placeholder && n.tag.Get("doc") == "" {
			t.Errorf("%s is not documented", path)
		}
		if n.shape != shapeLeaf {
			return
		}
		for _, tag := range []string{"default", "min", "max"} {
			if text, ok := n.tag.Lookup(tag); ok {
				if err := parseInto(reflect.New(n.typ).Elem(), text, reflect.StructTag(strings.ReplaceAll(string(n.tag), "min:", "x:"))); err != nil {
					t.Errorf("%s: tag %s: %v", path, tag, err)
				}
			}
		}
	})
}
