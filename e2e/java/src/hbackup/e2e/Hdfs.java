package hbackup.e2e;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.crypto.key.KeyProvider;
import org.apache.hadoop.crypto.key.KeyProviderFactory;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;

/**
 * A name node and data nodes. Ports that the configuration gives as 0 are chosen by the kernel. Settings of its own:
 *
 * <ul>
 *   <li>{@code hbackup.e2e.datanodes}: how many data nodes there are; each further one has a directory beside the first;
 *   <li>{@code hbackup.e2e.zone}: a directory that is made an encryption zone, whose key is in
 *       {@code hadoop.security.key.provider.path}.
 * </ul>
 */
final class Hdfs {
  private Hdfs() {}

  static Configuration start(boolean format, Host.Facts facts) throws Exception {
    Configuration conf = new HdfsConfiguration();
    String zone = conf.get("hbackup.e2e.zone", "");
    if (format) {
      NameNode.format(conf);
    }
    if (format && !zone.isEmpty()) {
      makeKey(conf); // before the name node reads them
    }
    NameNode name = NameNode.createNameNode(new String[0], conf);
    int rpc = name.getNameNodeAddress().getPort();
    String uri = "hdfs://127.0.0.1:" + rpc;
    Configuration data = new HdfsConfiguration();
    data.set("fs.defaultFS", uri);
    DataNode node = DataNode.createDataNode(new String[0], data);
    int nodes = conf.getInt("hbackup.e2e.datanodes", 1);
    for (int i = 2; i <= nodes; i++) {
      DataNode.createDataNode(new String[0], furtherNode(data, i));
    }
    awaitWritable(data, nodes);
    if (format && !zone.isEmpty()) {
      makeZone(data, new Path(zone));
    }
    facts.put("namenode", "127.0.0.1:" + rpc);
    facts.put("http", "127.0.0.1:" + name.getHttpAddress().getPort());
    facts.put("datanode", "127.0.0.1:" + node.getXferPort());
    facts.put("datanode.ipc", "127.0.0.1:" + node.getIpcPort());
    facts.put("datanode.http", "127.0.0.1:" + node.getInfoPort());
    return data;
  }

  private static Configuration furtherNode(Configuration first, int i) {
    Configuration conf = new Configuration(first);
    conf.set("dfs.datanode.data.dir", first.get("dfs.datanode.data.dir") + i);
    for (String key : new String[] {"dfs.datanode.address", "dfs.datanode.ipc.address", "dfs.datanode.http.address"}) {
      conf.set(key, "127.0.0.1:0");
    }
    return conf;
  }

  private static void makeKey(Configuration conf) throws Exception {
    // The key is unlocked for each call of WebHDFS; this is the least work that the JDK allows.
    System.setProperty("jdk.jceks.iterationCount", "10000");
    KeyProvider keys = KeyProviderFactory.getProviders(conf).get(0);
    keys.createKey("e2e", KeyProvider.options(conf));
    keys.flush();
  }

  /** Makes an empty directory that is encrypted. */
  private static void makeZone(Configuration conf, Path zone) throws Exception {
    DistributedFileSystem fs = (DistributedFileSystem) FileSystem.newInstance(conf);
    try {
      fs.mkdirs(zone);
      fs.createEncryptionZone(zone, "e2e");
    } finally {
      fs.close();
    }
  }

  /** Waits until the data nodes are there and safe mode is over: only then can a file be written. */
  private static void awaitWritable(Configuration conf, int nodes) throws Exception {
    DistributedFileSystem fs = (DistributedFileSystem) FileSystem.newInstance(conf);
    try {
      while (fs.getDataNodeStats(DatanodeReportType.LIVE).length < nodes || fs.isInSafeMode()) {
        Thread.sleep(20);
      }
    } finally {
      fs.close();
    }
  }
}
