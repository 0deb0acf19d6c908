package hbackup.e2e;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;

/** A name node and a data node. Ports that the configuration gives as 0 are chosen by the kernel. */
final class Hdfs {
  private Hdfs() {}

  static Configuration start(boolean format, Host.Facts facts) throws Exception {
    Configuration conf = new HdfsConfiguration();
    if (format) {
      NameNode.format(conf);
    }
    NameNode name = NameNode.createNameNode(new String[0], conf);
    int rpc = name.getNameNodeAddress().getPort();
    String uri = "hdfs://127.0.0.1:" + rpc;
    Configuration data = new HdfsConfiguration();
    data.set("fs.defaultFS", uri);
    DataNode node = DataNode.createDataNode(new String[0], data);
    awaitWritable(data);
    facts.put("namenode", "127.0.0.1:" + rpc);
    facts.put("http", "127.0.0.1:" + name.getHttpAddress().getPort());
    facts.put("datanode", "127.0.0.1:" + node.getXferPort());
    facts.put("datanode.ipc", "127.0.0.1:" + node.getIpcPort());
    facts.put("datanode.http", "127.0.0.1:" + node.getInfoPort());
    return data;
  }

  /** Waits until a data node is there and safe mode is over: only then can a file be written. */
  private static void awaitWritable(Configuration conf) throws Exception {
    DistributedFileSystem fs = (DistributedFileSystem) FileSystem.newInstance(conf);
    try {
      while (fs.getDataNodeStats(DatanodeReportType.LIVE).length == 0 || fs.isInSafeMode()) {
        Thread.sleep(20);
      }
    } finally {
      fs.close();
    }
  }
}
