package hbackup.e2e;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.ha.HAServiceProtocol.RequestSource;
import org.apache.hadoop.ha.HAServiceProtocol.StateChangeRequestInfo;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.hdfs.server.namenode.ha.BootstrapStandby;

/** One name node of a pair, of which one at a time is active. Which one it is the configuration says. */
final class NameNodes {
  private static NameNode node;

  private NameNodes() {}

  /** Starts as a standby. The first of the two is formatted, the other one takes over what that has. */
  static synchronized void start(String how) throws Exception {
    Configuration conf = new HdfsConfiguration();
    if (how.equals("format")) {
      NameNode.format(conf);
    } else if (how.equals("bootstrap")) {
      int code = BootstrapStandby.run(new String[] {"-nonInteractive"}, new HdfsConfiguration());
      if (code != 0) {
        throw new IOException("bootstrap of the standby ends with " + code);
      }
    }
    node = NameNode.createNameNode(new String[0], conf);
  }

  static void startDataNode() throws Exception {
    DataNode.createDataNode(new String[0], new HdfsConfiguration());
  }

  /** Makes the node "active" or "standby". It logs that, or why not. */
  static synchronized void become(String state) throws IOException {
    StateChangeRequestInfo by = new StateChangeRequestInfo(RequestSource.REQUEST_BY_USER_FORCED);
    if (state.equals("active")) {
      node.getRpcServer().transitionToActive(by);
    } else if (state.equals("standby")) {
      node.getRpcServer().transitionToStandby(by);
    } else {
      throw new IOException("unknown state " + state);
    }
  }
}
