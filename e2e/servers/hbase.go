package servers

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
)

// HBaseOptions choose how HBase is started. The zero value is HBase 2.6 with one
// region server on a local directory.
type HBaseOptions struct {
	Version       Version
	Dir           string   // where files and logs go; a temporary directory, removed at Stop, when empty
	HDFS          *HDFS    // where the root directory is; nil: a local directory (file://)
	RegionServers int      // 0 means 1
	ZooKeeperPort int      // 0: any free one
	Extra         Settings // hbase-site.xml settings of your own, such as cleaner intervals, TTLs, hbase.wal.dir
}

// HBase is ZooKeeper, a master and region servers in one JVM, with the driver:
// HBase's own Java client, called from Go.
type HBase struct {
	options HBaseOptions
	jars    *jarSet
	dir     workDir
	mu      sync.Mutex
	facts   map[string]string
	process *process
}

// StartHBase starts HBase and returns when the master is initialised.
func StartHBase(ctx context.Context, o HBaseOptions) (*HBase, error) {
	jars, err := jarsOf(ctx, o.Version)
	if err != nil {
		return nil, err
	}
	dir, err := newWorkDir(o.Dir, "hbase")
	if err != nil {
		return nil, err
	}
	if o.RegionServers == 0 {
		o.RegionServers = 1
	}
	h := &HBase{options: o, jars: jars, dir: dir}
	if err := h.start(ctx); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *HBase) start(ctx context.Context) error {
	conf := h.ConfDir()
	if err := h.writeConf(); err != nil {
		return err
	}
	archive, err := h.jars.classArchive(ctx)
	if err != nil {
		return err
	}
	cmd, err := h.jars.command(conf, "900m", archive, "hbackup.e2e.Host", "hbase", strconv.Itoa(h.options.RegionServers))
	if err != nil {
		return err
	}
	p, facts, err := spawnReady(ctx, "hbase", h.LogFile(), cmd)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.process, h.facts = p, facts
	h.mu.Unlock()
	return h.writeConf() // now with the addresses, for HBase's own tools
}

func (h *HBase) writeConf() error {
	core, hdfs := Settings{"hadoop.tmp.dir": h.dir.path("tmp")}, Settings{}
	if fs := h.options.HDFS; fs != nil {
		core, hdfs = fs.coreSite(), fs.hdfsSite()
	}
	return writeConf(h.ConfDir(), "", core, hdfs, h.site())
}

// site gives hbase-site.xml: everything small and quick, so that many clusters
// fit on a laptop.
func (h *HBase) site() Settings {
	_, zk, err := net.SplitHostPort(h.fact("zookeeper"))
	if err != nil {
		zk = strconv.Itoa(h.options.ZooKeeperPort)
	}
	s := Settings{
		"hbase.rootdir":                                     h.Root(),
		"hbase.cluster.distributed":                         "false",
		"hbase.tmp.dir":                                     h.dir.path("tmp"),
		"hbase.zookeeper.quorum":                            "127.0.0.1",
		"hbase.zookeeper.property.clientPort":               zk,
		"hbase.zookeeper.property.dataDir":                  h.dir.path("zookeeper"),
		"hbase.master.hostname":                             "127.0.0.1",
		"hbase.regionserver.hostname":                       "127.0.0.1",
		"hbase.master.ipc.address":                          "127.0.0.1",
		"hbase.regionserver.ipc.address":                    "127.0.0.1",
		"hbase.master.port":                                 "0",
		"hbase.regionserver.port":                           "0",
		"hbase.master.info.port":                            "-1",
		"hbase.regionserver.info.port":                      "-1",
		"hbase.wal.provider":                                "filesystem",
		"hbase.master.wait.on.regionservers.mintostart":     strconv.Itoa(h.options.RegionServers),
		"hbase.master.wait.on.regionservers.maxtostart":     strconv.Itoa(h.options.RegionServers),
		"hbase.regionserver.msginterval":                    "200",
		"hbase.server.thread.wakefrequency":                 "500",
		"hbase.regionserver.handler.count":                  "8",
		"hbase.regionserver.metahandler.count":              "3",
		"hbase.regionserver.replication.handler.count":      "1",
		"hbase.procedure.remote.dispatcher.threadpool.size": "8",
		"hbase.master.procedure.threads":                    "4",
		"hbase.regionserver.executor.openregion.threads":    "2",
		"hbase.hfile.compaction.discharger.interval":        "2000",
	}
	if h.options.HDFS == nil {
		s["hbase.unsafe.stream.capability.enforce"] = "false"
	}
	if h.jars.version == HBase26 {
		s["hbase.io.compress.snappy.codec"] = "org.apache.hadoop.hbase.io.compress.xerial.SnappyCodec"
		s["hbase.io.compress.zstd.codec"] = "org.apache.hadoop.hbase.io.compress.zstd.ZstdCodec"
	}
	return s.with(h.options.Extra)
}

func (h *HBase) fact(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.facts[name]
}

// Root is the root directory with its file system: "hdfs://127.0.0.1:port/hbase" or "file:///…".
func (h *HBase) Root() string {
	if h.options.HDFS != nil {
		return h.options.HDFS.URI() + "/hbase"
	}
	return "file://" + h.dir.path("hbase")
}

// ZooKeeper is the quorum, "127.0.0.1:port". The parent node is /hbase.
func (h *HBase) ZooKeeper() string { return h.fact("zookeeper") }

// Driver is where HBase's own client can be called over HTTP, for example
// curl -d '{"table":"t"}' http://ADDRESS/regions.
func (h *HBase) Driver() string { return h.fact("driver") }

// Master is the endpoint of the master's RPC.
func (h *HBase) Master() string { return h.fact("master") }

// Version gives the version that runs.
func (h *HBase) Version() Version { return h.jars.version }

// ConfDir holds the configuration for HBase's own tools.
func (h *HBase) ConfDir() string { return h.dir.path("conf") }

// LogFile has the output of master and region servers.
func (h *HBase) LogFile() string { return h.dir.path("hbase.log") }

// PID is the process id of the server.
func (h *HBase) PID() int { return h.process.pid }

// Kill ends master and region servers at once, as a power cut would. Restart brings them back.
func (h *HBase) Kill() { h.process.kill() }

// Restart starts HBase again with its data and its ZooKeeper address, after ending it if need be.
func (h *HBase) Restart(ctx context.Context) error {
	h.Kill()
	return h.start(ctx)
}

// Stop ends HBase and removes its directory if it was a temporary one.
func (h *HBase) Stop() error {
	h.process.kill()
	return h.dir.remove()
}

// String names the cluster in a log.
func (h *HBase) String() string {
	return strings.TrimSpace(fmt.Sprintf("HBase %s at %s", h.jars.version, h.ZooKeeper()))
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
