package servers

import (
	"net"
	"strconv"
)

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
		"hbase.cluster.distributed":                         strconv.FormatBool(h.options.Separate),
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
	if h.options.WALDir != "" {
		s["hbase.wal.dir"] = h.WALDir()
	}
	if h.options.Separate {
		s["zookeeper.session.timeout"] = "10000" // how long a killed region server is not missed
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
