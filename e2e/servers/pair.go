package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// HDFSPair is an HDFS with high availability: two name nodes that share their
// edits, of which one is active, and a data node, each a process of its own.
type HDFSPair struct {
	options HDFSOptions
	jars    *jarSet
	dir     *workDir
	nodes   [2]nameNode
	data    *process
}

type nameNode struct {
	rpc, http string
	process   *process
}

// nameService is what the pair is called.
const nameService = "pair"

// StartHDFSPair starts an empty HDFS whose first name node is active. Port, DataNodes
// and Zone of the options are not used.
func StartHDFSPair(ctx context.Context, o HDFSOptions) (*HDFSPair, error) {
	jars, err := jarsOf(ctx, o.Version)
	if err != nil {
		return nil, err
	}
	dir, err := newWorkDir(o.Dir, "hdfs-pair")
	if err != nil {
		return nil, err
	}
	h := &HDFSPair{options: o, jars: jars, dir: dir}
	if err := h.start(ctx); err != nil {
		h.end()
		return nil, dir.afterFailure(ctx, err)
	}
	return h, nil
}

func (h *HDFSPair) start(ctx context.Context) error {
	if err := h.chooseAddresses(); err != nil {
		return err
	}
	if err := h.startNameNode(ctx, 0, "format"); err != nil {
		return err
	}
	if err := h.Become(ctx, 0, "active"); err != nil {
		return err
	}
	if err := h.startNameNode(ctx, 1, "bootstrap"); err != nil {
		return err
	}
	var err error
	h.data, err = h.spawn(ctx, "datanode", nil, "datanode")
	return err
}

// chooseAddresses picks free ports: each server must know those of the others.
func (h *HDFSPair) chooseAddresses() error {
	for i := range h.nodes {
		for _, a := range []*string{&h.nodes[i].rpc, &h.nodes[i].http} {
			l, err := net.Listen("tcp", address(0))
			if err != nil {
				return err
			}
			defer l.Close() // open until all are chosen, so that they differ
			*a = l.Addr().String()
		}
	}
	return nil
}

// startNameNode starts a node as a standby.
func (h *HDFSPair) startNameNode(ctx context.Context, i int, args ...string) error {
	name := fmt.Sprintf("nn%d", i+1)
	var err error
	h.nodes[i].process, err = h.spawn(ctx, name, Settings{
		"dfs.ha.namenode.id":    name,
		"dfs.namenode.name.dir": h.dir.path("name-" + name),
	}, append([]string{"namenode"}, args...)...)
	return err
}

func (h *HDFSPair) spawn(ctx context.Context, name string, own Settings, args ...string) (*process, error) {
	conf := h.dir.path("conf-" + name)
	if err := writeConf(conf, "", h.coreSite(), h.hdfsSite().with(own), nil); err != nil {
		return nil, err
	}
	archive, err := h.jars.classArchive(ctx)
	if err != nil {
		return nil, err
	}
	cmd, err := h.jars.command(conf, "256m", archive, "hbackup.e2e.Host", args...)
	if err != nil {
		return nil, err
	}
	p, _, err := spawnReady(ctx, name, h.dir.path(name+".log"), cmd, nil)
	return p, err
}

func (h *HDFSPair) coreSite() Settings {
	return Settings{"fs.defaultFS": h.URI(), "hadoop.tmp.dir": h.dir.path("tmp")}.with(h.options.Extra)
}

func (h *HDFSPair) hdfsSite() Settings {
	s := Settings{
		"dfs.nameservices":                                  nameService,
		"dfs.ha.namenodes." + nameService:                   "nn1,nn2",
		"dfs.namenode.shared.edits.dir":                     "file://" + h.dir.path("shared"),
		"dfs.ha.tail-edits.period":                          "1",
		"dfs.ha.fencing.methods":                            "shell(/bin/true)",
		"dfs.datanode.data.dir":                             h.dir.path("data"),
		"dfs.datanode.address":                              address(0),
		"dfs.datanode.ipc.address":                          address(0),
		"dfs.datanode.http.address":                         address(0),
		"dfs.datanode.hostname":                             "localhost",
		"dfs.heartbeat.interval":                            "1",
		"dfs.replication":                                   "1",
		"dfs.namenode.safemode.extension":                   "0",
		"dfs.namenode.safemode.min.datanodes":               "1",
		"dfs.namenode.fs-limits.min-block-size":             "0",
		"dfs.client.failover.proxy.provider." + nameService: "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
	}
	for i, n := range h.nodes {
		of := nameService + ".nn" + strconv.Itoa(i+1)
		s["dfs.namenode.rpc-address."+of] = n.rpc
		s["dfs.namenode.http-address."+of] = n.http
	}
	return s.with(h.options.Extra)
}

// Become makes a name node, 0 or 1, "active" or "standby", and returns when it says
// that it is. An active one must have become a standby before the other one becomes
// active: nothing else keeps both from writing edits.
func (h *HDFSPair) Become(ctx context.Context, node int, state string) error {
	n := h.nodes[node]
	if _, err := io.WriteString(n.process.stdin, state+"\n"); err != nil {
		return err
	}
	for n.process.alive() {
		now, err := n.state(ctx)
		if err == nil && now == state {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return n.process.failure("become " + state)
}

// state asks a name node whether it is active.
func (n nameNode) state(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.http+"/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus", nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var answer struct {
		Beans []struct{ State string } `json:"beans"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return "", err
	}
	if len(answer.Beans) != 1 {
		return "", fmt.Errorf("%d beans tell the state", len(answer.Beans))
	}
	return answer.Beans[0].State, nil
}

// Kill ends a name node at once.
func (h *HDFSPair) Kill(node int) { h.nodes[node].process.kill() }

// Start starts a name node that was killed, as a standby.
func (h *HDFSPair) Start(ctx context.Context, node int) error {
	h.Kill(node)
	return h.startNameNode(ctx, node)
}

// URI names the pair: "hdfs://" and the name of the service.
func (h *HDFSPair) URI() string { return "hdfs://" + nameService }

// Addresses are the RPC endpoints of the name nodes.
func (h *HDFSPair) Addresses() []string { return []string{h.nodes[0].rpc, h.nodes[1].rpc} }

// HTTPAddresses are their HTTP endpoints, where WebHDFS is.
func (h *HDFSPair) HTTPAddresses() []string { return []string{h.nodes[0].http, h.nodes[1].http} }

func (h *HDFSPair) logFiles() []string {
	return []string{h.dir.path("nn1.log"), h.dir.path("nn2.log"), h.dir.path("datanode.log")}
}

func (h *HDFSPair) end() {
	h.data.kill()
	for _, n := range h.nodes {
		n.process.kill()
	}
}

// Stop ends all and removes the directory if it was a temporary one.
func (h *HDFSPair) Stop() error {
	h.end()
	return h.dir.remove()
}
