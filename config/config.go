// Package config reads hbackup's configuration: one YAML file, in which every
// key can be overridden by an environment variable and by a flag. The structs in
// this file are the one source of truth: names, types, defaults and
// documentation of the keys are taken from their fields and tags by reflection.
//
// Nothing here reaches a network. A Config that Load returned without error is
// whole: required keys are there, names refer to things that exist, values are
// in range.
package config

import (
	"slices"
	"strings"
	"time"

	"hbackup"
)

// Version is the version of the configuration file that this package reads.
const Version = 1

// Config is the whole of it.
//
// Tags: key is the name in the file; doc the documentation; default the value
// when nothing is set, defaultdoc its description when it is computed; required
// marks keys that must be set; enum lists the allowed values; min and max bound
// numbers, sizes and durations; port is added to addresses without one; only is
// the one kind of location that a key has a meaning for.
type Config struct {
	Version   int                              `key:"version" required:"true" doc:"Version of this file's format: 1."`
	Clusters  map[hbackup.ClusterName]*Cluster `key:"clusters" doc:"The HBase clusters, by name."`
	Locations map[LocationName]*Location       `key:"locations" doc:"The places that hold backups, by name."`
	Sets      map[SetName]*Set                 `key:"sets" doc:"Sets of tables, by name, for backup --table-set."`
	Copy      Copy                             `key:"copy" doc:"How files are copied."`
	Index     Index                            `key:"index" doc:"What is remembered of the locations on this machine; losing it costs time and nothing else."`
	Log       Log                              `key:"log" doc:"Messages on standard error."`

	// Warnings are findings that stop nothing.
	Warnings []Problem `key:"-"`
	// File is the absolute path of the file that was read.
	File string `key:"-"`

	values []Value
}

// Cluster is one HBase cluster: how it is reached and where its backups go.
type Cluster struct {
	Name hbackup.ClusterName `key:"-"`

	Registry  Registry       `key:"registry" doc:"How the active master and the region servers are found: either zookeeper or masters."`
	Root      URL            `key:"root" required:"true" doc:"HBase's root directory (hbase.rootdir), fully qualified." example:"hdfs://nn1:8020/hbase"`
	NameNodes []HostPort     `key:"namenodes" port:"8020" doc:"The name nodes when root names an HDFS nameservice instead of a host." example:"[nn1:8020, nn2:8020]"`
	WAL       URL            `key:"wal" defaultdoc:"root" doc:"HBase's write-ahead-log directory (hbase.wal.dir), fully qualified." example:"hdfs://nn1:8020/hbase-wal"`
	User      string         `key:"user" defaultdoc:"the operating system's user" doc:"User name given to HBase and HDFS (SIMPLE authentication)." example:"hbase"`
	Tables    Tables         `key:"tables" doc:"Which tables are backed up when none and no set is named. Tables that appear later are picked up on their own."`
	Target    LocationName   `key:"target" required:"true" doc:"The location that new backups are written to." example:"main"`
	History   []LocationName `key:"history" doc:"Locations that still hold backups; they are read, and no new backup is written to them. The target may be among them, so that changing the target is the only change." example:"[old]"`
	Reference string         `key:"reference" enum:"own,any" default:"own" doc:"What the first backups after a change of target do with files that an earlier location of the history holds: own copies them, so that every backup is whole in its own location; any leaves them there, and the backup names them: it then needs both locations, and HBase's own tools cannot read it alone."`

	MaxAge time.Duration `key:"max_age" min:"1m" max:"8760h" doc:"How long ago the newest restorable moment of a table may be before info calls the table late: the time between two backups and how long one takes. Without it no table is late." example:"26h"`

	Snapshots        int           `key:"snapshots" default:"2" min:"1" max:"64" doc:"Snapshots that HBase is asked to take at a time: each flushes its table."`
	SnapshotTTL      time.Duration `key:"snapshot_ttl" default:"72h" min:"10m" max:"8760h" doc:"How long HBase keeps a snapshot of ours if nobody deletes it, for the case that hbackup and its host are gone for good."`
	TableWait        time.Duration `key:"table_wait" default:"1m" min:"1s" max:"24h" doc:"How long a backup waits for tables that another backup of the cluster works on. What is not free by then fails, and the rest is done."`
	OperationTimeout time.Duration `key:"operation_timeout" default:"30m" min:"1s" max:"24h" doc:"How long one operation of HBase (snapshot, clone, flush) may take."`
}

// Tables chooses tables by patterns.
type Tables struct {
	Include []hbackup.TablePattern `key:"include" default:"*" doc:"Patterns of the tables to back up: * stands for any characters and ? for one, in the name space and in the table's name apart. A pattern without a name space is about the default one; * alone means all tables." example:"[orders, billing:*]"`
	Exclude []hbackup.TablePattern `key:"exclude" doc:"Patterns of tables that are left out all the same." example:"[\"*:tmp_*\"]"`
}

// Selection is the cluster's own choice of tables.
func (c *Cluster) Selection() hbackup.Selection {
	return hbackup.Selection{Include: c.Tables.Include, Exclude: c.Tables.Exclude}
}

// Set is a choice of tables under a name, for any cluster.
type Set struct {
	Name    SetName                `key:"-"`
	Include []hbackup.TablePattern `key:"include" required:"true" doc:"Patterns of the tables in the set, as in clusters.NAME.tables." example:"[billing:*]"`
	Exclude []hbackup.TablePattern `key:"exclude" doc:"Patterns of tables that are left out all the same." example:"[billing:tmp_*]"`
}

// Selection is what the set chooses.
func (s *Set) Selection() hbackup.Selection {
	return hbackup.Selection{Set: string(s.Name), Include: s.Include, Exclude: s.Exclude}
}

// Set gives the set of that name; an unknown one is KindNotFound.
func (c *Config) Set(name SetName) (*Set, error) {
	if s := c.Sets[name]; s != nil {
		return s, nil
	}
	var known []string
	for n := range c.Sets {
		known = append(known, string(n))
	}
	slices.Sort(known)
	err := hbackup.Errorf("find set of tables", string(name), hbackup.KindNotFound, "%s defines no such set", c.File)
	if len(known) == 0 {
		return nil, err.WithHint("it defines no sets; add one under sets")
	}
	return nil, err.WithHint("it defines: %s", strings.Join(known, ", "))
}

// Registry says where to ask for the active master. Exactly one of ZooKeeper
// and Masters is set.
type Registry struct {
	ZooKeeper []HostPort `key:"zookeeper" port:"2181" doc:"The ZooKeeper quorum." example:"[zk1:2181, zk2:2181, zk3:2181]"`
	ZNode     string     `key:"znode" default:"/hbase" doc:"HBase's parent node in ZooKeeper (zookeeper.znode.parent)."`
	Masters   []HostPort `key:"masters" port:"16000" doc:"The masters, or other bootstrap nodes; HBase is then reached without ZooKeeper." example:"[m1:16000, m2:16000]"`
}

// Location is one place that holds backups.
type Location struct {
	Name LocationName `key:"-"`

	URL             URL         `key:"url" required:"true" doc:"The fully qualified place: s3://bucket/prefix, gs://bucket/prefix, hdfs://namenode:8020/directory or file:///directory." example:"s3://backups/hbase"`
	Endpoint        Endpoint    `key:"endpoint" only:"s3,gs" doc:"Address of an S3 service that is not AWS, or under which Google Cloud Storage is reached instead of its usual one." example:"https://s3.example.org"`
	Region          string      `key:"region" only:"s3" defaultdoc:"as the AWS SDK finds it" doc:"AWS region, or what the service calls so." example:"eu-central-1"`
	PathStyle       bool        `key:"path_style" only:"s3" default:"false" doc:"Put the bucket into the path instead of the host name; most services that are not AWS need it."`
	Credentials     Credentials `key:"credentials" only:"s3" doc:"Access keys, by reference. Without them the AWS SDK looks at its usual places (environment, profile, instance role)."`
	CredentialsFile string      `key:"credentials_file" only:"gs" defaultdoc:"the application default credentials" doc:"JSON file with the key of a service account, or with the description of a federated identity." example:"/etc/hbackup/gcs.json"`
	CAFile          string      `key:"ca_file" only:"s3,gs,hdfs" doc:"PEM file with the authorities that the endpoint's certificate is checked against; on hdfs:// those of webhdfs." example:"/etc/ssl/private-ca.pem"`

	StorageClass string `key:"storage_class" only:"s3,gs" doc:"Storage class of the files; empty means the bucket's own." example:"STANDARD_IA"`
	SSE          SSE    `key:"sse" only:"s3" doc:"Encryption by the store."`
	Tags         []Tag  `key:"tags" only:"s3" doc:"Tags of every object, each as name=value; ten at most." example:"[team=hbase, env=prod]"`
	PartSize     Size   `key:"part_size" only:"s3,gs" default:"16MiB" min:"5MiB" max:"5GiB" doc:"Size of the parts of a multipart upload; on gs:// also of the chunks of a resumable one, and a multiple of 256 KiB and 1 GiB at most."`
	Committer    string `key:"committer" only:"s3,gs" default:"auto" enum:"auto,direct,deferred" doc:"How the files of an image become visible: direct puts each under its final name at once, deferred holds them as uploads until the image is committed. auto is deferred where the bucket is versioned or locked, and direct elsewhere."`

	ParallelParts int  `key:"parallel_parts" only:"s3" default:"4" min:"1" max:"64" doc:"Parts of one object in flight at once."`
	UploadBuffers Size `key:"upload_buffers" only:"s3" defaultdoc:"(parallel_parts + 1) × part_size" min:"5MiB" max:"1TiB" doc:"Memory for what is being uploaded, of all files together; at least part_size."`

	RequesterPays bool   `key:"requester_pays" only:"s3" default:"false" doc:"Agree to pay for requests to a bucket of another account that asks for it."`
	Checksum      string `key:"checksum" only:"s3" enum:"crc64nvme,md5,none" default:"crc64nvme" doc:"How the store is told what an object's bytes must be; md5 is for services that refuse the newer headers and takes much more processor time, none for those that refuse both."`
	ContentMD5    bool   `key:"content_md5" only:"s3" default:"false" doc:"Send Content-MD5 with batch deletes, which some services insist on."`
	SignPayload   bool   `key:"sign_payload" only:"s3" default:"false" doc:"Put the SHA-256 of every body into its signature, for services that demand it (XAmzContentSHA256Mismatch); it takes most of a core."`

	NameNodes       []HostPort   `key:"namenodes" only:"hdfs" port:"8020" doc:"The name nodes when url names an HDFS nameservice instead of a host." example:"[nn1:8020, nn2:8020]"`
	User            string       `key:"user" only:"hdfs" defaultdoc:"as the HDFS client finds it: HADOOP_USER_NAME, then the operating system's user" doc:"User name given to HDFS (SIMPLE authentication)." example:"backup"`
	WebHDFS         []WebAddress `key:"webhdfs" only:"hdfs" doc:"Where WebHDFS (of every name node) or HttpFS is served. With it HDFS is reached over HTTP, and not by its native protocol: for encryption zones, erasure-coded directories, and where only HTTP passes." example:"[https://nn1:9871, https://nn2:9871]"`
	DelegationToken Secret       `key:"delegation_token" only:"hdfs" doc:"A delegation token for webhdfs, by reference: who acts on a cluster with Kerberos. A file is read anew for each call."`
	Replication     int          `key:"replication" only:"hdfs" defaultdoc:"as the name node says" min:"1" max:"512" doc:"Replicas of each new file on HDFS." example:"2"`
	BlockSize       Size         `key:"block_size" only:"hdfs" defaultdoc:"as the name node says" min:"1MiB" max:"16GiB" doc:"Block size of new files on HDFS, a multiple of 512 bytes." example:"256MiB"`

	RetryFor time.Duration `key:"retry_for" only:"file" default:"15s" min:"0s" max:"1h" doc:"How long a call that failed for a moment, as on a network file system, is repeated without getting on; 0s is not at all. The other kinds of locations repeat their requests themselves."`
	Limits   Limits        `key:"limits" doc:"How much of the location is used at most."`
}

// Credentials are references to the parts of an S3 access key.
type Credentials struct {
	AccessKey    Secret `key:"access_key" doc:"Access key id."`
	SecretKey    Secret `key:"secret_key" doc:"Secret access key."`
	SessionToken Secret `key:"session_token" doc:"Session token of temporary credentials."`
	Profile      string `key:"profile" doc:"Profile of the AWS configuration files, in place of a key." example:"backup"`
	Role         Role   `key:"role" doc:"A role that is assumed with the above, or by web identity."`
}

// Role is a role of AWS's security token service, or of one like it.
type Role struct {
	ARN         string   `key:"arn" doc:"The role to assume; its keys are renewed before they expire." example:"arn:aws:iam::123456789012:role/backup"`
	ExternalID  string   `key:"external_id" doc:"External id that the role's owner asks for."`
	SessionName string   `key:"session_name" defaultdoc:"hbackup" doc:"Name of the session, as the audit log shows it."`
	TokenFile   string   `key:"token_file" doc:"File with a web identity token; the role is then assumed by it and without a key. It is read again for each renewal." example:"/var/run/secrets/token"`
	Endpoint    Endpoint `key:"endpoint" defaultdoc:"AWS's, in the region" doc:"Address of the token service of a service that is not AWS." example:"https://sts.example.org"`
}

// SSE is server-side encryption.
type SSE struct {
	Mode        string `key:"mode" enum:"none,aes256,kms,customer" default:"none" doc:"none leaves it to the bucket; aes256 uses the store's own key; kms a key of its key service; customer a key of yours, which goes with every request and which the store forgets."`
	KMSKey      string `key:"kms_key" doc:"Key id or ARN; only with mode kms." example:"alias/backups"`
	CustomerKey Secret `key:"customer_key" doc:"32 bytes in base64; only with mode customer, and over https. Without it the backups cannot be read by anybody, so keep a copy elsewhere."`
}

// Copy bounds the copying of files.
type Copy struct {
	Concurrency          int  `key:"concurrency" default:"8" min:"1" max:"256" doc:"Files in flight at once."`
	Tables               int  `key:"tables" default:"2" min:"1" max:"256" doc:"Tables that a backup works on at a time."`
	VerifyHFileChecksums bool `key:"verify_hfile_checksums" default:"true" doc:"Check HBase's own block checksums while the bytes pass, so that damage at the source is found when it is backed up."`
}

// Index is about the cache of what locations hold.
type Index struct {
	Enabled   bool   `key:"enabled" default:"true" doc:"Remember the records of backups and which files they name, so that list and info read only new ones."`
	Directory string `key:"directory" defaultdoc:"hbackup in the user's cache directory" doc:"Where the index of each cluster lies." example:"/var/cache/hbackup"`
}

// Log is about messages on standard error.
type Log struct {
	Level      string `key:"level" enum:"debug,info,warn,error" default:"info" doc:"The least important messages that are shown."`
	Format     string `key:"format" enum:"text,json" default:"text" doc:"How a message is written."`
	TraceStore string `key:"trace_store" defaultdoc:"no trace" doc:"File to which every call of a location is added as a line of JSON: its operation, object, size, duration and kind of error." example:"/var/log/hbackup/store.jsonl"`
}

// Cluster gives the cluster of that name; an unknown one is KindNotFound.
func (c *Config) Cluster(name hbackup.ClusterName) (*Cluster, error) {
	if cl := c.Clusters[name]; cl != nil {
		return cl, nil
	}
	known := make([]string, 0, len(c.Clusters))
	for _, cl := range c.AllClusters() {
		known = append(known, string(cl.Name))
	}
	return nil, hbackup.Errorf("find cluster", string(name), hbackup.KindNotFound, "%s defines no such cluster", c.File).
		WithHint("it defines: %s", strings.Join(known, ", "))
}

// Location gives a location by its name. Errors are KindNotFound.
func (c *Config) Location(name LocationName) (*Location, error) {
	if l := c.Locations[name]; l != nil {
		return l, nil
	}
	var known []string
	for n := range c.Locations {
		known = append(known, string(n))
	}
	slices.Sort(known)
	return nil, hbackup.Errorf("find location", string(name), hbackup.KindNotFound, "%s defines no such location", c.File).
		WithHint("it defines: %s", strings.Join(known, ", "))
}

// AllClusters gives every cluster, ordered by name.
func (c *Config) AllClusters() []*Cluster {
	all := make([]*Cluster, 0, len(c.Clusters))
	for _, cl := range c.Clusters {
		all = append(all, cl)
	}
	slices.SortFunc(all, func(a, b *Cluster) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return all
}

// LocationsOf gives the locations that hold backups of the cluster: its target
// first, then its history in the order of the file. Each is there once.
func (c *Config) LocationsOf(cl *Cluster) []*Location {
	all := []*Location{c.Locations[cl.Target]}
	for _, name := range cl.History {
		if name != cl.Target {
			all = append(all, c.Locations[name])
		}
	}
	return all
}
