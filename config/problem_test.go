package config

import (
	"slices"
	"strings"
	"testing"

	"hbackup"
)

// edit gives minimal with one line replaced; line counts from 1.
func edit(line int, text string) string {
	lines := strings.Split(minimal, "\n")
	lines[line-1] = text
	return strings.Join(lines, "\n")
}

func TestProblems(t *testing.T) {
	const f = "/etc/hb.yaml"
	for _, c := range []struct {
		name string
		text string
		env  []string
		set  []Override
		want []string
	}{
		{name: "empty file", text: "", want: []string{f + ": the file is empty; see docs/configuration.md for a first one"}},
		{name: "only comments", text: "# nothing\n", want: []string{f + ": the file is empty; see docs/configuration.md for a first one"}},
		{name: "not YAML", text: "a: [\n", want: []string{f + ":1: not valid YAML: did not find expected node content"}},
		{name: "tab", text: "a:\n\tb: 1\n", want: []string{f + ":2: not valid YAML: found character that cannot start any token"}},
		{name: "a list", text: "- a\n", want: []string{f + ":1: keys with values are expected here, not a list"}},
		{name: "two documents", text: minimal + "---\n" + minimal, want: []string{f + ": the file holds more than one YAML document; keep one and take the --- lines out"}},
		{name: "no version", text: edit(1, "log: {}"), want: []string{f + ":1: version: the key is missing; add the line version: 1"}},
		{name: "another version", text: "version: 2\nnew: {}\n", want: []string{f + ":1: version: this hbackup reads version 1 of the format, not 2; write version: 1, or use the hbackup that the file was written for"}},
		{name: "no cluster", text: "version: 1\nclusters:\n", want: []string{f + ":2: clusters: no cluster is defined; see docs/configuration.md for a first one"}},
		{name: "unknown key", text: edit(6, "    targt: main"), want: []string{
			f + ":6: unknown key clusters.prod.targt; did you mean target?"}},
		{name: "unknown section", text: minimal + "locatons: {}\n", want: []string{f + ":9: unknown key locatons; did you mean locations?"}},
		{name: "key in the wrong place", text: minimal + "part_size: 1MiB\n", want: []string{f + ":9: unknown key part_size; part_size is a key of locations.NAME"}},
		{name: "section in the wrong place", text: minimal + "log: {locations: x}\n", want: []string{f + ":9: unknown key log.locations; locations is a key of the top level"}},
		{name: "reserved name", text: strings.Replace(minimal, "prod:", "probe:", 1), want: []string{f + ":3: clusters.probe: locations are tried out in a folder of this name; choose another name"}},
		{name: "unlike any key", text: minimal + "log: {banana: 1}\n", want: []string{f + ":9: unknown key log.banana; known here: level, format, trace_store"}},
		{name: "escape sequence in a key", text: minimal + "\"\\e[31m\": 1\n", want: []string{f + ":9: unknown key \"\\x1b[31m\"; known here: version, clusters, locations, sets, copy, index, log"}},
		{name: "key twice", text: minimal + "log: {}\nlog: {}\n", want: []string{f + ":10: log: the key is there twice, first in line 9; keep one of the two"}},
		{name: "cluster twice", text: edit(7, "  prod: {}\nlocations:"), want: []string{f + ":7: clusters.prod: the key is there twice, first in line 3; keep one of the two"}},
		{name: "merge key", text: minimal + "log: &l {}\ncopy: {<<: *l}\n", want: []string{f + ":10: copy: merge keys (<<) are not supported; write the keys out, or use an alias for a whole section"}},
		{name: "no value", text: edit(6, "    target:"), want: []string{
			f + ":6: clusters.prod.target: the key has no value; leave the key out to use its default"}},
		{name: "empty value", text: edit(6, `    target: ""`), want: []string{f + ":6: clusters.prod.target: the key is required and must not be empty"}},
		{name: "list for a value", text: edit(6, "    target: [main]"), want: []string{
			f + ":6: clusters.prod.target: one value is expected, not a list"}},
		{name: "value for a section", text: minimal + "copy: 8\n", want: []string{f + ":9: copy: keys with values are expected here, not a single value"}},
		{name: "keys for a list", text: edit(4, "    registry: {zookeeper: {a: b}}"), want: []string{f + ":4: clusters.prod.registry.zookeeper: a list is expected, not keys with values; write it as [a, b]"}},
		{name: "list in a list", text: edit(4, "    registry: {zookeeper: [[a]]}"), want: []string{f + ":4: clusters.prod.registry.zookeeper: a list of single values is expected, not of a list; write it as [a, b]"}},
		{name: "twice in a list", text: edit(4, "    registry: {zookeeper: [a, a]}"), want: []string{f + ":4: clusters.prod.registry.zookeeper: a is in the list twice"}},
		{name: "cluster name", text: edit(3, "  pr.od:"), want: []string{f + `:3: clusters: cluster name "pr.od": character "." is not allowed (letters, digits, '_' and '-', starting with a letter or digit)`}},
		{name: "location name", text: edit(8, "  _x: {}\n  main: {url: s3://bucket}"), want: []string{f + `:8: locations: location name "_x": character "_" is not allowed (letters, digits, '_' and '-', starting with a letter or digit)`}},
		{name: "no number", text: minimal + "copy: {concurrency: many}\n", want: []string{f + `:9: copy.concurrency: "many" is not a whole number`}},
		{name: "too small", text: minimal + "copy: {concurrency: 0}\n", want: []string{f + ":9: copy.concurrency: 0 is less than the least allowed value, 1"}},
		{name: "too large", text: minimal + "copy: {concurrency: 1000}\n", want: []string{f + ":9: copy.concurrency: 1000 is more than the largest allowed value, 256"}},
		{name: "yes", text: minimal + "copy: {verify_hfile_checksums: yes}\n", want: []string{f + `:9: copy.verify_hfile_checksums: "yes" is neither true nor false; write true or false`}},
		{name: "not in the enum", text: minimal + "log: {level: warning}\n", want: []string{f + `:9: log.level: "warning" is not one of debug, info, warn, error; did you mean warn?`}},
		{name: "far from the enum", text: minimal + "log: {format: xml}\n", want: []string{f + `:9: log.format: "xml" is not one of text, json`}},
		{name: "no duration", text: minimal, set: []Override{set("clusters.prod.snapshot_ttl", "3")}, want: []string{`flag --set clusters.prod.snapshot_ttl: clusters.prod.snapshot_ttl: "3" is not a duration; write it as 90s, 10m, 72h or 3d`}},
		{name: "duration too short", text: minimal, set: []Override{set("clusters.prod.snapshot_ttl", "3s")}, want: []string{`flag --set clusters.prod.snapshot_ttl: clusters.prod.snapshot_ttl: 3s is less than the least allowed value, 10m`}},
		{name: "no size", text: edit(8, "  main: {url: s3://bucket, part_size: 16MB}"), want: []string{f + `:8: locations.main.part_size: "16MB" is not a size; write it as 16MiB, 512KiB or as a number of bytes`}},
		{name: "size too small", text: edit(8, "  main: {url: s3://bucket, part_size: 4MiB}"), want: []string{f + ":8: locations.main.part_size: 4MiB is less than the least allowed value, 5MiB"}},
		{name: "size too large to count", text: edit(8, "  main: {url: s3://bucket, part_size: 9999999999TiB}"), want: []string{f + `:8: locations.main.part_size: "9999999999TiB" is too large`}},
		{name: "address", text: edit(4, `    registry: {masters: ["http://m1"]}`), want: []string{f + `:4: clusters.prod.registry.masters: "http://m1" is not an address; write it as host:16000`}},
		{name: "port", text: edit(4, `    registry: {masters: ["m1:99999"]}`), want: []string{f + `:4: clusters.prod.registry.masters: "m1:99999": "99999" is not a port; write it as host:16000`}},
		{name: "no registry", text: edit(4, "    history: []"), want: []string{f + ":3: clusters.prod.registry: neither zookeeper nor masters is set; for example registry: {zookeeper: [zk1:2181], znode: /hbase}"}},
		{name: "both registries", text: edit(4, "    registry: {zookeeper: [a], masters: [b]}"), want: []string{f + ":4: clusters.prod.registry: zookeeper and masters are both set; keep one of the two"}},
		{name: "znode", text: edit(4, "    registry: {zookeeper: [a], znode: hbase}"), want: []string{f + `:4: clusters.prod.registry.znode: "hbase" is not an absolute path in ZooKeeper`}},
		{name: "root without scheme", text: edit(5, "    root: /hbase"), want: []string{f + `:5: clusters.prod.root: "/hbase" is not fully qualified; write it with its scheme, as s3://bucket/prefix, hdfs://nn1:8020/hbase or file:///srv/backup`}},
		{name: "root on s3", text: edit(5, "    root: s3://b/hbase"), want: []string{f + ":5: clusters.prod.root: HBase on s3:// is not supported; write it as hdfs://nn1:8020/hbase"}},
		{name: "root without host", text: edit(5, "    root: hdfs:///hbase"), want: []string{f + `:5: clusters.prod.root: "hdfs:///hbase" names no name node; write it as hdfs://nn1:8020/hbase`}},
		{name: "root without directory", text: edit(5, "    root: hdfs://nn1:8020/"), want: []string{f + `:5: clusters.prod.root: "hdfs://nn1:8020" has no directory; it is hbase.rootdir in hbase-site.xml`}},
		{name: "wal", text: edit(5, "    root: hdfs://nn1:8020/hbase\n    wal: gs://x/y"), want: []string{f + ":6: clusters.prod.wal: HBase on gs:// is not supported; write it as hdfs://nn1:8020/hbase"}},
		{name: "name nodes for a directory", text: edit(5, "    root: file:///hbase\n    namenodes: [a]"), want: []string{f + ":6: clusters.prod.namenodes: it applies to roots on hdfs:// only; take the key out"}},
		{name: "unknown target", text: edit(6, "    target: mian"), want: []string{f + ":6: clusters.prod.target: there is no location mian; did you mean main?"}},
		{name: "unknown target, nothing like it", text: edit(6, "    target: zzzzz"), want: []string{f + ":6: clusters.prod.target: there is no location zzzzz; known locations: main"}},
		{name: "unknown history", text: edit(6, "    target: main\n    history: [x1]"), want: []string{f + ":7: clusters.prod.history: there is no location x1; known locations: main"}},
		{name: "bucket of Google", text: edit(8, "  main: {url: gs://my..bucket/b}"), want: []string{f + `:8: locations.main.url: "my..bucket" is not a bucket name; bucket names have 3 to 63 lower-case letters, digits, '-', '_' and '.', and up to 222 with dots in between`}},
		{name: "no bucket of Google", text: edit(8, "  main: {url: 'gs:///b'}"), want: []string{f + ":8: locations.main.url: the URL names no bucket; write it as s3://bucket/prefix or gs://bucket/prefix"}},
		{name: "chunks of Google", text: edit(8, "  main: {url: gs://bucket, part_size: 5242881}"), want: []string{f + ":8: locations.main.part_size: 5242881B is no multiple of 256 KiB up to 1 GiB; the chunks of gs:// must have one"}},
		{name: "unknown committer", text: edit(8, "  main: {url: s3://bucket, committer: defered}"), want: []string{f + `:8: locations.main.committer: "defered" is not one of auto, direct, deferred; did you mean deferred?`}},
		{name: "committer of a directory", text: edit(8, "  main: {url: file:///b, committer: deferred}"), want: []string{f + ":8: locations.main.committer: it applies to s3:// and gs:// only, and the location is file:///b; take the key out"}},
		{name: "credentials of Google", text: edit(8, "  main: {url: gs://bucket, credentials_file: key.json}"), want: []string{f + `:8: locations.main.credentials_file: "key.json" is not an absolute path; write the whole path`}},
		{name: "S3 keys of Google", text: edit(8, "  main: {url: gs://bucket, region: x}"), want: []string{f + ":8: locations.main.region: it applies to s3:// only, and the location is gs://bucket; take the key out"}},
		{name: "keys of object stores", text: edit(8, "  main: {url: file:///b, storage_class: x, credentials_file: /f}"), want: []string{
			f + ":8: locations.main.storage_class: it applies to s3:// and gs:// only, and the location is file:///b; take the key out",
			f + ":8: locations.main.credentials_file: it applies to gs:// only, and the location is file:///b; take the key out"}},
		{name: "no such kind", text: edit(8, "  main: {url: ftp://nn/b}"), want: []string{f + ":8: locations.main.url: there are no locations of the kind ftp://; write s3://bucket/prefix, gs://bucket/prefix, hdfs://nn1:8020/directory or file:///directory"}},
		{name: "a view of HDFS", text: edit(8, "  main: {url: viewfs://all/b}"), want: []string{f + ":8: locations.main.url: there are no locations of the kind viewfs://; name the HDFS itself, as hdfs://nn1:8020/backups"}},
		{name: "WebHDFS as a kind", text: edit(8, "  main: {url: 'swebhdfs://nn:9871/b'}"), want: []string{f + ":8: locations.main.url: there are no locations of the kind swebhdfs://: the way to an HDFS is no part of its name; write url: hdfs://nn1:8020/b and beside it webhdfs: [https://nn:9871]"}},
		{name: "WebHDFS's address", text: edit(8, "  main: {url: hdfs://nn/b, webhdfs: [nn:9870]}"), want: []string{f + `:8: locations.main.webhdfs: "nn:9870" is not the address of WebHDFS; write it as http://nn1:9870, or https://nn1:9871`}},
		{name: "WebHDFS half secured", text: edit(8, "  main: {url: hdfs://nn/b, webhdfs: ['http://nn:9870', 'https://nn:9871']}"), want: []string{f + ":8: locations.main.webhdfs: some addresses are https and some are http; serve all of them over https"}},
		{name: "token without WebHDFS", text: edit(8, "  main: {url: hdfs://nn/b, delegation_token: {env: A}, ca_file: /ca}"), want: []string{
			f + ":8: locations.main.ca_file: the native protocol of HDFS has no certificates; set webhdfs, too, or take the key out",
			f + ":8: locations.main.delegation_token: the native protocol of HDFS takes no token here; set webhdfs, too, or take the key out"}},
		{name: "inline token", text: edit(8, "  main: {url: hdfs://nn/b, webhdfs: ['https://nn:9871'], delegation_token: hunter2}"), want: []string{f + ":8: locations.main.delegation_token: a secret must not stand in the configuration; refer to it: {env: NAME} or {file: /path}"}},
		{name: "one HDFS directory by two ways", text: edit(8, "  main: {url: hdfs://nn/b, webhdfs: ['http://web:9870']}") + "  again: {url: hdfs://other/b, webhdfs: ['http://web:9870']}\n", want: []string{f + ":9: locations.again.url: hdfs://other/b is the location main already; one place has one name; refer to main"}},
		{name: "no name node", text: edit(8, "  main: {url: 'hdfs:///b'}"), want: []string{f + `:8: locations.main.url: "hdfs:///b" names no name node; write it as hdfs://nn1:8020/backups`}},
		{name: "root of an HDFS", text: edit(8, "  main: {url: hdfs://nn}"), want: []string{f + ":8: locations.main.url: the root directory of an HDFS cannot be a location; write it as hdfs://nn1:8020/backups"}},
		{name: "colon on HDFS", text: edit(8, "  main: {url: 'hdfs://nn/a:b'}"), want: []string{f + `:8: locations.main.url: "/a:b" holds a colon, which HDFS does not allow; choose another directory`}},
		{name: "snapshots of HDFS", text: edit(8, "  main: {url: hdfs://nn/a/.snapshot}"), want: []string{f + `:8: locations.main.url: HDFS keeps the name in "/a/.snapshot" for itself; choose another directory`}},
		{name: "block size", text: edit(8, "  main: {url: hdfs://nn/b, block_size: 1048577}"), want: []string{f + ":8: locations.main.block_size: 1048577B is no multiple of 512 bytes; HDFS has a checksum for every 512 bytes"}},
		{name: "HDFS keys of a directory", text: edit(8, "  main: {url: file:///b, replication: 2, namenodes: [a]}"), want: []string{
			f + ":8: locations.main.replication: it applies to hdfs:// only, and the location is file:///b; take the key out",
			f + ":8: locations.main.namenodes: it applies to hdfs:// only, and the location is file:///b; take the key out"}},
		{name: "S3 keys of HDFS", text: edit(8, "  main: {url: hdfs://nn/b, region: x}"), want: []string{f + ":8: locations.main.region: it applies to s3:// only, and the location is hdfs://nn/b; take the key out"}},
		{name: "in HBase's directory, with the port", text: edit(8, "  main: {url: hdfs://nn1:8020/hbase/x}"), want: []string{
			f + ":8: locations.main.url: hdfs://nn1:8020/hbase/x overlaps the HBase directory hdfs://nn1/hbase of cluster prod; choose a directory outside of hdfs://nn1/hbase"}},
		{name: "in HBase's directory, by the nameservice", text: edit(8, "  main: {url: hdfs://ns/hbase/x, namenodes: [nn2, nn1]}"), want: []string{
			f + ":8: locations.main.url: hdfs://ns/hbase/x overlaps the HBase directory hdfs://nn1/hbase of cluster prod; choose a directory outside of hdfs://nn1/hbase"}},
		{name: "one HDFS directory twice", text: edit(8, "  main: {url: hdfs://nn/b}") + "  again: {url: hdfs://nn:8020/b}\n", want: []string{f + ":9: locations.again.url: hdfs://nn:8020/b is the location main already; one place has one name; refer to main"}},
		{name: "bucket", text: edit(8, "  main: {url: s3://My_Bucket}"), want: []string{f + `:8: locations.main.url: "My_Bucket" is not a bucket name; bucket names have 3 to 63 lower-case letters, digits, '.' and '-'`}},
		{name: "no bucket", text: edit(8, "  main: {url: 's3:///x'}"), want: []string{f + ":8: locations.main.url: the URL names no bucket; write it as s3://bucket/prefix or gs://bucket/prefix"}},
		{name: "two slashes", text: edit(8, "  main: {url: file://srv/b}"), want: []string{f + `:8: locations.main.url: "file://srv/b" names a host; write three slashes: file:///srv/b`}},
		{name: "root of the machine", text: edit(8, "  main: {url: 'file:///'}"), want: []string{f + ":8: locations.main.url: the root directory of the machine cannot be a location; name a directory of its own, as file:///srv/hbackup"}},
		{name: "dots", text: edit(8, "  main: {url: s3://bucket/a/../b}"), want: []string{f + `:8: locations.main.url: "s3://bucket/a/../b" has the path segment ".."`}},
		{name: "query", text: edit(8, "  main: {url: 's3://bucket/a?b'}"), want: []string{f + `:8: locations.main.url: "s3://bucket/a?b" holds the character "?"`}},
		{name: "user in the URL", text: edit(8, "  main: {url: 's3://key:hunter2@bucket'}"), want: []string{f + ":8: locations.main.url: the address holds a user name; take the part before the @ out"}},
		{name: "endpoint", text: edit(8, "  main: {url: s3://bucket, endpoint: localhost:9000}"), want: []string{f + `:8: locations.main.endpoint: "localhost:9000" is not the address of an object store; write it as https://s3.example.org or http://host:9000`}},
		{name: "path in the endpoint", text: edit(8, "  main: {url: s3://bucket, endpoint: 'http://h/bucket'}"), want: []string{f + `:8: locations.main.endpoint: "http://h/bucket": only a scheme, a host and a port belong here; write it as https://s3.example.org or http://host:9000`}},
		{name: "user in the endpoint", text: edit(8, "  main: {url: s3://bucket, endpoint: 'http://k:hunter2@h'}"), want: []string{f + ":8: locations.main.endpoint: the address holds a user name; put keys under credentials, or name a credentials_file"}},
		{name: "S3 keys of a directory", text: edit(8, "  main: {url: file:///b, region: x, credentials: {access_key: {env: A}}}"), want: []string{
			f + ":8: locations.main.region: it applies to s3:// only, and the location is file:///b; take the key out",
			f + ":8: locations.main.credentials.access_key.env: it applies to s3:// only, and the location is file:///b; take the key out",
			f + ":8: locations.main.credentials: access_key is set without secret_key; set both or neither"}},
		{name: "inline secret", text: edit(8, "  main: {url: s3://bucket, credentials: {access_key: hunter2}}"), want: []string{f + ":8: locations.main.credentials.access_key: a secret must not stand in the configuration; refer to it: {env: NAME} or {file: /path}"}},
		{name: "inline secret in a variable", text: minimal, env: []string{"HBACKUP_LOCATIONS_MAIN_CREDENTIALS_SECRET_KEY=hunter2"}, want: []string{
			"env HBACKUP_LOCATIONS_MAIN_CREDENTIALS_SECRET_KEY: locations.main.credentials.secret_key: a secret must not stand in the configuration; set locations.main.credentials.secret_key.env or locations.main.credentials.secret_key.file"}},
		{name: "half of the credentials", text: edit(8, "  main: {url: s3://bucket, credentials: {secret_key: {env: A}}}"), want: []string{f + ":8: locations.main.credentials: secret_key is set without access_key; set both or neither"}},
		{name: "token alone", text: edit(8, "  main: {url: s3://bucket, credentials: {session_token: {env: A}}}"), want: []string{f + ":8: locations.main.credentials: session_token is set without access_key; set access_key and secret_key too"}},
		{name: "env and file", text: edit(8, "  main: {url: s3://bucket, credentials: {access_key: {env: A, file: /f}, secret_key: {env: B}}}"), want: []string{f + ":8: locations.main.credentials.access_key: env and file are both set; keep one of the two"}},
		{name: "relative file", text: edit(8, "  main: {url: s3://bucket, ca_file: ca.pem}"), want: []string{f + `:8: locations.main.ca_file: "ca.pem" is not an absolute path; write the whole path`}},
		{name: "customer without a key", text: edit(8, "  main: {url: s3://bucket, sse: {mode: customer}}"), want: []string{f + ":8: locations.main.sse.customer_key: sse.mode is customer, and there is no key; refer to it: {env: NAME} or {file: /path}"}},
		{name: "customer's key in the open", text: edit(8, "  main: {url: s3://bucket, sse: {mode: customer, customer_key: hunter2}}"), want: []string{f + ":8: locations.main.sse.customer_key: a secret must not stand in the configuration; refer to it: {env: NAME} or {file: /path}"}},
		{name: "customer's key over http", text: edit(8, "  main: {url: s3://bucket, endpoint: 'http://h', sse: {mode: customer, customer_key: {env: A}}}"), want: []string{f + ":8: locations.main.sse.customer_key: the key would go over plain http; use an https endpoint"}},
		{name: "customer's key without its mode", text: edit(8, "  main: {url: s3://bucket, sse: {customer_key: {env: A}}}"), want: []string{f + ":8: locations.main.sse.customer_key: the key is set, but sse.mode is none; set sse.mode to customer"}},
		{name: "role without arn", text: edit(8, "  main: {url: s3://bucket, credentials: {role: {external_id: x}}}"), want: []string{f + ":8: locations.main.credentials.role: settings of a role are there, but no arn; set arn too"}},
		{name: "token and external id", text: edit(8, "  main: {url: s3://bucket, credentials: {role: {arn: a, token_file: /t, external_id: x}}}"), want: []string{f + ":8: locations.main.credentials.role: token_file and external_id are both set; keep one of the two"}},
		{name: "token and profile", text: edit(8, "  main: {url: s3://bucket, credentials: {profile: p, role: {arn: a, token_file: /t}}}"), want: []string{f + ":8: locations.main.credentials.role: token_file needs no key, and a key or profile is set; keep one of the two"}},
		{name: "key and profile", text: edit(8, "  main: {url: s3://bucket, credentials: {profile: p, access_key: {env: A}, secret_key: {env: B}}}"), want: []string{f + ":8: locations.main.credentials: access_key and profile are both set; keep one of the two"}},
		{name: "no tag", text: edit(8, "  main: {url: s3://bucket, tags: [team]}"), want: []string{f + `:8: locations.main.tags: "team" is not a tag; write it as name=value`}},
		{name: "tag of AWS", text: edit(8, "  main: {url: s3://bucket, tags: ['aws:x=y']}"), want: []string{f + ":8: locations.main.tags: tags that begin with aws: belong to AWS; choose another name"}},
		{name: "tag twice", text: edit(8, "  main: {url: s3://bucket, tags: [a=b, a=c]}"), want: []string{f + ":8: locations.main.tags: there are two tags a; keep one of them"}},
		{name: "too many tags", text: edit(8, "  main: {url: s3://bucket, tags: [a=, b=, c=, d=, e=, f=, g=, h=, i=, j=, k=]}"), want: []string{f + ":8: locations.main.tags: there are 11 tags; S3 takes 10; take some out"}},
		{name: "small buffers", text: edit(8, "  main: {url: s3://bucket, upload_buffers: 8MiB}"), want: []string{f + ":8: locations.main.upload_buffers: 8MiB does not hold one part of 16MiB; make it larger"}},
		{name: "key without kms", text: edit(8, "  main: {url: s3://bucket, sse: {kms_key: k}}"), want: []string{f + ":8: locations.main.sse.kms_key: the key is set, but sse.mode is none; set sse.mode to kms"}},
		{name: "one place twice", text: minimal + "  again: {url: s3://bucket/}\n", want: []string{f + ":9: locations.again.url: s3://bucket is the location main already; one place has one name; refer to main"}},
		{name: "inside HBase", text: strings.Replace(edit(8, "  main: {url: file:///hbase/backup}"), "hdfs://nn1/hbase", "file:///hbase", 1), want: []string{
			f + ":8: locations.main.url: file:///hbase/backup overlaps the HBase directory file:///hbase of cluster prod; choose a directory outside of file:///hbase"}},
		{name: "variable like a key", text: minimal, env: []string{"HBACKUP_CLUSTERS_PROD_TARGT=x"}, want: []string{"env HBACKUP_CLUSTERS_PROD_TARGT: the variable overrides no key; did you mean HBACKUP_CLUSTERS_PROD_TARGET?"}},
		{name: "variable of no cluster", text: minimal, env: []string{"HBACKUP_LOCATIONS_ELSEWHERE_PART_SIZE=x"}, want: []string{"env HBACKUP_LOCATIONS_ELSEWHERE_PART_SIZE: the variable overrides no key; a cluster, location or set must be in the file, or be given with --set, before a variable can change it"}},
		{name: "variable of two keys", text: minimal + "  a-b: {url: s3://abc}\n  a_b: {url: s3://abd}\n", env: []string{"HBACKUP_LOCATIONS_A_B_REGION=x"}, want: []string{"env HBACKUP_LOCATIONS_A_B_REGION: the variable could mean locations.a-b.region or locations.a_b.region; use --set, which takes the path itself"}},
		{name: "flag of no key", text: minimal, set: []Override{set("clusters.prod.targt", "x")}, want: []string{"flag --set clusters.prod.targt: unknown key clusters.prod.targt; did you mean target?"}},
		{name: "flag below a value", text: minimal, set: []Override{set("log.level.x", "x")}, want: []string{"flag --set log.level.x: log.level holds a value and has no keys below it"}},
		{name: "flag of a section", text: minimal, set: []Override{set("log", "x")}, want: []string{"flag --set log: log is a section, not a value; keys below it: level, format, trace_store"}},
		{name: "rates and counts", text: edit(8, "  main: {url: s3://bucket, limits: {upload: 50MB/s, download: 10MiB, requests: 0, concurrency: many}}"), want: []string{
			f + `:8: locations.main.limits.upload: "50MB/s" is not a rate; write it as 50MiB/s or 512KiB/s`,
			f + `:8: locations.main.limits.download: "10MiB" is not a rate; write it as 50MiB/s or 512KiB/s`,
			f + ":8: locations.main.limits.requests: 0 is less than the least allowed value, 1",
			f + `:8: locations.main.limits.concurrency: "many" is not a whole number`}},
		{name: "a rate of nothing", text: edit(8, "  main: {url: s3://bucket, limits: {upload: 0B/s}}"), want: []string{f + ":8: locations.main.limits.upload: 0B/s is less than the least allowed value, 1KiB/s"}},
		{name: "repeating S3", text: edit(8, "  main: {url: s3://bucket, retry_for: 1m}"), want: []string{f + ":8: locations.main.retry_for: it applies to file:// only, and the location is s3://bucket; take the key out"}},
		{name: "relative trace", text: minimal + "log: {trace_store: trace.jsonl}\n", want: []string{f + `:9: log.trace_store: "trace.jsonl" is not an absolute path; write the whole path`}},
		{name: "flag of all clusters", text: minimal, set: []Override{set("clusters", "x")}, want: []string{"flag --set clusters: clusters is a section, not a value; name a key below it, as clusters.NAME.registry"}},
		{name: "flag of a secret", text: minimal, set: []Override{set("locations.main.credentials.access_key", "hunter2")}, want: []string{
			"flag --set locations.main.credentials.access_key: locations.main.credentials.access_key: a secret must not stand in the configuration; set locations.main.credentials.access_key.env or locations.main.credentials.access_key.file"}},
		{name: "control character", text: minimal, set: []Override{set("clusters.prod.user", "a\x1b[1m")}, want: []string{`flag --set clusters.prod.user: clusters.prod.user: the value "a\x1b[1m" holds a control character`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(c.text, c.env, c.set...)
			if err == nil {
				t.Fatal("it was accepted")
			}
			got := found(err)
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if hbackup.KindOf(err) != hbackup.KindUsage {
				t.Errorf("kind %q", hbackup.KindOf(err))
			}
			if strings.Contains(strings.Join(got, ""), "hunter2") {
				t.Error("the secret is shown")
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	const f = "/etc/hb.yaml"
	for _, c := range []struct {
		name string
		text string
		env  []string
		want []string
	}{
		{name: "none", text: minimal},
		{name: "unused location", text: minimal + "  old: {url: s3://old-one}\n", want: []string{f + ":9: locations.old: no cluster uses it"}},
		{name: "inside each other", text: edit(6, "    target: main\n    history: [old]") + "  old: {url: s3://bucket/old}\n", want: []string{f + ":10: locations.old.url: s3://bucket/old and the location main (s3://bucket) lie inside each other"}},
		{name: "one root twice", text: edit(7, "  copy: {registry: {zookeeper: [zk1]}, root: hdfs://nn1/hbase, target: main}\nlocations:"), want: []string{f + ":5: clusters.prod.root: it is also the root of cluster copy"}},
		{name: "missing secret", text: edit(8, "  main: {url: s3://bucket, credentials: {access_key: {env: NO_SUCH_VARIABLE_HERE}, secret_key: {file: /nonexistent}}}"), want: []string{
			f + ":8: locations.main.credentials.access_key: read secret env NO_SUCH_VARIABLE_HERE: the environment variable is not set",
			f + ":8: locations.main.credentials.secret_key: read secret /nonexistent: no such file or directory"}},
		{name: "somebody else's variable", text: minimal, env: []string{"HBACKUP_BANANA=1", "HBACKUP_PORT=tcp://1.2.3.4:80", "HBACKUP_SERVICE_HOST=1.2.3.4"}, want: []string{"env HBACKUP_BANANA: the variable starts with HBACKUP_ but overrides no key; it is ignored"}},
		{name: "a secret's own variable", text: edit(8, "  main: {url: s3://bucket, credentials: {access_key: {env: HBACKUP_LOCATION_KEY}, secret_key: {env: HBACKUP_LOCATION_KEY}}}"), env: []string{"HBACKUP_LOCATION_KEY=x"}, want: []string{
			f + ":8: locations.main.credentials.access_key: read secret env HBACKUP_LOCATION_KEY: the environment variable is not set",
			f + ":8: locations.main.credentials.secret_key: read secret env HBACKUP_LOCATION_KEY: the environment variable is not set"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, p := range mustLoad(t, c.text, c.env).Warnings {
				got = append(got, withHint(p))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestErrorCountsTheOthers(t *testing.T) {
	_, err := load(minimal+"log: {level: x, format: y}\n", nil)
	if want := `read configuration /etc/hb.yaml:9: log.level: "x" is not one of debug, info, warn, error (and 1 more)`; err.Error() != want {
		t.Errorf("got %s", err)
	}
}
