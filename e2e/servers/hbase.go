package servers

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"sync"

	"hbackup"
)

// HBaseOptions choose how HBase is started. The zero value is HBase 2.6 with one
// region server on a local directory.
type HBaseOptions struct {
	Version       Version
	Dir           string   // where files and logs go; a temporary directory, removed at Stop, when empty
	HDFS          *HDFS    // where the root directory is; nil: a local directory (file://)
	WALDir        string   // "/path" on the root directory's file system for write-ahead logs; empty: below the root directory
	RegionServers int      // 0 means 1
	Separate      bool     // every region server in a process of its own, so that it can be killed
	ZooKeeperPort int      // 0: any free one
	Extra         Settings // hbase-site.xml settings of your own, such as cleaner intervals and TTLs
}

// HBase is ZooKeeper, a master and region servers in one JVM, with the driver:
// HBase's own Java client, called from Go.
type HBase struct {
	options HBaseOptions
	jars    *jarSet
	dir     *workDir
	process *process // ZooKeeper, master and driver

	mu      sync.Mutex
	facts   map[string]string
	servers map[string]*process // separate region servers by name
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
	h := &HBase{options: o, jars: jars, dir: dir, facts: map[string]string{}, servers: map[string]*process{}}
	if err := h.start(ctx); err != nil {
		return nil, dir.afterFailure(ctx, err)
	}
	return h, nil
}

func (h *HBase) start(ctx context.Context) error {
	if err := h.writeConf(); err != nil {
		return err
	}
	inside := h.options.RegionServers
	if h.options.Separate {
		inside = 0
	}
	cmd, err := h.command(ctx, "hbase", strconv.Itoa(inside))
	if err != nil {
		return err
	}
	ctx, giveUp := context.WithCancelCause(ctx) // on the first process that cannot be started
	defer giveUp(nil)
	var others sync.WaitGroup
	p, facts, err := spawnReady(ctx, "hbase", h.LogFile(), cmd, func(name, value string) error {
		h.mu.Lock()
		h.facts[name] = value
		h.mu.Unlock()
		if name != "zookeeper" || !h.options.Separate {
			return nil
		}
		// Region servers find the master through ZooKeeper, and the master waits for them.
		if err := h.writeConf(); err != nil {
			return err
		}
		for range h.options.RegionServers {
			others.Go(func() {
				if _, err := h.spawnRegionServer(ctx); err != nil {
					giveUp(err)
				}
			})
		}
		return nil
	})
	others.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		p.kill()
		h.killRegionServers()
		return err
	}
	h.process = p
	h.mu.Lock()
	h.facts = facts
	h.mu.Unlock()
	return h.writeConf() // now with the addresses, for HBase's own tools
}

// command gives the command line of a JVM of ours in a role.
func (h *HBase) command(ctx context.Context, role ...string) (*exec.Cmd, error) {
	archive, err := h.jars.classArchive(ctx)
	if err != nil {
		return nil, err
	}
	return h.jars.command(h.ConfDir(), "900m", archive, "hbackup.e2e.Host", role...)
}

// spawnRegionServer starts one region server in a process of its own and gives its name.
func (h *HBase) spawnRegionServer(ctx context.Context) (string, error) {
	cmd, err := h.command(ctx, "regionserver")
	if err != nil {
		return "", err
	}
	log, err := newFile(h.dir.path("regionserver-*.log"))
	if err != nil {
		return "", err
	}
	p, facts, err := spawnReady(ctx, "region server", log, cmd, nil)
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers[facts["server"]] = p
	return facts["server"], nil
}

func (h *HBase) killRegionServers() {
	h.mu.Lock()
	servers := slices.Collect(maps.Values(h.servers))
	clear(h.servers)
	h.mu.Unlock()
	for _, p := range servers {
		p.kill()
	}
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

// WALDir is the directory that has WALs and oldWALs, with its file system.
func (h *HBase) WALDir() string {
	switch {
	case h.options.WALDir == "":
		return h.Root()
	case h.options.HDFS != nil:
		return h.options.HDFS.URI() + h.options.WALDir
	}
	return "file://" + h.dir.path(h.options.WALDir)
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

// LogFile has the output of the master, and of region servers that are not separate.
func (h *HBase) LogFile() string { return h.dir.path("hbase.log") }

// PID is the process id of the master's process.
func (h *HBase) PID() int { return h.process.pid }

// Kill ends master and region servers at once, as a power cut would. Restart brings them back.
func (h *HBase) Kill() {
	h.process.kill()
	h.killRegionServers()
}

// Restart starts HBase again with its data and its ZooKeeper address, after ending it if need be.
func (h *HBase) Restart(ctx context.Context) error {
	h.Kill()
	return h.start(ctx)
}

// Stop ends HBase and removes its directory if it was a temporary one.
func (h *HBase) Stop() error {
	h.Kill()
	return h.dir.remove()
}

// KillRegionServer ends a region server ("host,port,startcode") without
// closing its regions: the others replay its log. A separate one is killed, one
// inside the master's process aborts.
func (h *HBase) KillRegionServer(ctx context.Context, name string) error {
	if !h.options.Separate {
		return h.call(ctx, "abortRegionServer", args{"server": name}, nil)
	}
	h.mu.Lock()
	p := h.servers[name]
	delete(h.servers, name)
	h.mu.Unlock()
	if p == nil {
		return hbackup.Errorf("kill the region server", name, hbackup.KindNotFound, "not one of this cluster")
	}
	p.kill()
	return nil
}

// StartRegionServer adds a region server and gives its name.
func (h *HBase) StartRegionServer(ctx context.Context) (name string, err error) {
	if h.options.Separate {
		return h.spawnRegionServer(ctx)
	}
	err = h.call(ctx, "startRegionServer", args{}, &name)
	return name, err
}

// String names the cluster in a log.
func (h *HBase) String() string { return fmt.Sprintf("HBase %s at %s", h.jars.version, h.ZooKeeper()) }

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
