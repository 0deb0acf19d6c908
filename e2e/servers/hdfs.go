package servers

import (
	"context"
	"os"
	"os/user"
	"strconv"
	"sync"
)

// HDFSOptions choose how HDFS is started. The zero value is good.
type HDFSOptions struct {
	Version Version  // whose Hadoop is used
	Dir     string   // where files and logs go; a temporary directory, removed at Stop, when empty
	Port    int      // of the name node's RPC; 0: any free one
	Extra   Settings // hdfs-site.xml and core-site.xml settings of your own

	DataNodes int    // 0: one
	Zone      string // a directory that is made an encryption zone; "": none
}

// HDFS is a name node and data nodes in one JVM.
type HDFS struct {
	options HDFSOptions
	jars    *jarSet
	dir     *workDir
	mu      sync.Mutex
	facts   map[string]string
	process *process
}

// StartHDFS starts an empty HDFS and returns when files can be written.
func StartHDFS(ctx context.Context, o HDFSOptions) (*HDFS, error) {
	jars, err := jarsOf(ctx, o.Version)
	if err != nil {
		return nil, err
	}
	dir, err := newWorkDir(o.Dir, "hdfs")
	if err != nil {
		return nil, err
	}
	h := &HDFS{options: o, jars: jars, dir: dir}
	if err := h.start(ctx); err != nil {
		return nil, dir.afterFailure(ctx, err)
	}
	return h, nil
}

func (h *HDFS) start(ctx context.Context) error {
	conf := h.dir.path("conf-hdfs")
	if err := writeConf(conf, h.AuditFile(), h.coreSite(), h.hdfsSite(), nil); err != nil {
		return err
	}
	args := []string{"hdfs"}
	if !isDir(h.dir.path("name/current")) {
		args = append(args, "format")
	}
	archive, err := h.jars.classArchive(ctx)
	if err != nil {
		return err
	}
	cmd, err := h.jars.command(conf, "384m", archive, "hbackup.e2e.Host", args...)
	if err != nil {
		return err
	}
	p, facts, err := spawnReady(ctx, "hdfs", h.dir.path("hdfs.log"), cmd, nil)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.process, h.facts = p, facts
	return nil
}

// coreSite is what a client needs.
func (h *HDFS) coreSite() Settings {
	return Settings{
		"fs.defaultFS":   "hdfs://" + h.bind("namenode", h.options.Port),
		"hadoop.tmp.dir": h.dir.path("tmp"),
	}.with(h.keys(), h.options.Extra)
}

// keys says where the key of the encryption zone is: in a file, as this test needs
// no server for it.
func (h *HDFS) keys() Settings {
	if h.options.Zone == "" {
		return nil
	}
	return Settings{
		"hadoop.security.key.provider.path": "jceks://file" + h.dir.path("keys.jceks"),
		"hbackup.e2e.zone":                  h.options.Zone,
	}
}

func (h *HDFS) hdfsSite() Settings {
	return Settings{
		"hbackup.e2e.datanodes":                                        strconv.Itoa(max(1, h.options.DataNodes)),
		"dfs.replication":                                              "1",
		"dfs.namenode.name.dir":                                        h.dir.path("name"),
		"dfs.datanode.data.dir":                                        h.dir.path("data"),
		"dfs.namenode.http-address":                                    h.bind("http", 0),
		"dfs.datanode.address":                                         h.bind("datanode", 0),
		"dfs.datanode.ipc.address":                                     h.bind("datanode.ipc", 0),
		"dfs.datanode.http.address":                                    h.bind("datanode.http", 0),
		"dfs.datanode.hostname":                                        "localhost",
		"dfs.namenode.safemode.extension":                              "0",
		"dfs.namenode.safemode.min.datanodes":                          "1",
		"dfs.namenode.heartbeat.recheck-interval":                      "5000",
		"dfs.namenode.edits.noeditlogchannelflush":                     "true",
		"dfs.heartbeat.interval":                                       "1",
		"dfs.namenode.handler.count":                                   "4",
		"dfs.datanode.handler.count":                                   "4",
		"dfs.namenode.service.handler.count":                           "2",
		"dfs.namenode.fs-limits.min-block-size":                        "0",
		"dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "50",
	}.with(h.options.Extra)
}

// bind gives the address of an endpoint: after the first start the one it had.
func (h *HDFS) bind(fact string, port int) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a := h.facts[fact]; a != "" {
		return a
	}
	return address(port)
}

// Address is the name node's RPC endpoint, "127.0.0.1:port".
func (h *HDFS) Address() string { return h.facts["namenode"] }

// HTTPAddress is the name node's HTTP endpoint: WebHDFS and /jmx.
func (h *HDFS) HTTPAddress() string { return h.facts["http"] }

// URI is the file system's name, "hdfs://127.0.0.1:port".
func (h *HDFS) URI() string { return "hdfs://" + h.Address() }

// User is the owner of the file system: whoever runs the servers.
func (h *HDFS) User() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

// ConfDir holds the configuration for Hadoop's own tools.
func (h *HDFS) ConfDir() string { return h.dir.path("conf-hdfs") }

// LogFile has the output of both nodes.
func (h *HDFS) LogFile() string { return h.dir.path("hdfs.log") }

// PID is the process id of the server.
func (h *HDFS) PID() int { return h.process.pid }

// Kill ends HDFS at once, as a power cut would. Restart brings it back.
func (h *HDFS) Kill() { h.process.kill() }

// Restart starts HDFS again with its files and addresses, after ending it if need be.
func (h *HDFS) Restart(ctx context.Context) error {
	h.Kill()
	return h.start(ctx)
}

// Stop ends HDFS and removes its directory if it was a temporary one.
func (h *HDFS) Stop() error {
	h.process.kill()
	return h.dir.remove()
}
