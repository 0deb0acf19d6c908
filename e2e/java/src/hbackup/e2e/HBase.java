package hbackup.e2e;

import java.io.File;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.LocalHBaseCluster;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.util.JVMClusterUtil;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/** ZooKeeper, a master and region servers in this JVM, and the driver that speaks to them as a client. */
final class HBase {
  private HBase() {}

  static Driver start(Configuration conf, int regionServers, Host.Facts facts) throws Exception {
    int zk = startZooKeeper(new File(conf.get("hbase.zookeeper.property.dataDir")),
        conf.getInt(HConstants.ZOOKEEPER_CLIENT_PORT, 0));
    conf.setInt(HConstants.ZOOKEEPER_CLIENT_PORT, zk);
    facts.put("zookeeper", "127.0.0.1:" + zk);

    LocalHBaseCluster cluster = new LocalHBaseCluster(conf, 1, regionServers);
    cluster.startup();
    endWith(cluster);

    // Tags are only sent when the client asks for a codec that carries them.
    Configuration client = new Configuration(conf);
    client.set(HConstants.RPC_CODEC_CONF_KEY, "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags");
    Connection connection = ConnectionFactory.createConnection(client);
    awaitMaster(connection);
    Admin admin = connection.getAdmin();
    Driver driver = new Driver();
    Tables.register(driver, admin);
    Regions.register(driver, connection, admin);
    Snapshots.register(driver, admin);
    Cells.register(driver, connection);
    Loader.register(driver, connection, admin);
    BulkLoader.register(driver, client);
    Dumper.register(driver, connection);
    Chores.register(driver, admin, cluster);
    facts.put("driver", "127.0.0.1:" + driver.listen());
    facts.put("master", cluster.getMasters().get(0).getMaster().getServerName().toShortString());
    return driver;
  }

  static void startRegionServer(Configuration conf, Host.Facts facts) throws Exception {
    JVMClusterUtil.RegionServerThread server =
        JVMClusterUtil.createRegionServerThread(conf, HRegionServer.class, 0);
    server.start();
    server.waitForServerOnline();
    facts.put("server", server.getRegionServer().getServerName().getServerName());
    Thread t = new Thread(() -> {
      try {
        server.join();
      } catch (InterruptedException e) {
        // Falls through to the end.
      }
      Runtime.getRuntime().halt(server.getRegionServer().isAborted() ? 5 : 0);
    }, "region server watch");
    t.setDaemon(true);
    t.start();
  }

  private static int startZooKeeper(File dir, int port) throws Exception {
    System.setProperty("zookeeper.admin.enableServer", "false");
    System.setProperty("zookeeper.forceSync", "no");
    System.setProperty("zookeeper.4lw.commands.whitelist", "*");
    NIOServerCnxnFactory factory = new NIOServerCnxnFactory();
    factory.configure(new InetSocketAddress("127.0.0.1", port), 1000);
    ZooKeeperServer server = new ZooKeeperServer(dir, dir, 2000);
    server.startdata();
    List<Long> old = new ArrayList<>(server.getZKDatabase().getSessions());
    factory.startup(server);
    // After a restart nobody is left of those who had sessions before; HBase need not wait until they expire.
    old.forEach(server::closeSession);
    return factory.getLocalPort();
  }

  /** Ends the process with the master: one without it would answer nothing. An orderly shutdown ends the rest first. */
  private static void endWith(LocalHBaseCluster cluster) {
    Thread t = new Thread(() -> {
      JVMClusterUtil.MasterThread master = cluster.getMasters().get(0);
      try {
        master.join();
        if (!master.getMaster().isAborted()) {
          cluster.join();
          Runtime.getRuntime().halt(0);
        }
      } catch (InterruptedException e) {
        // Falls through to the end.
      }
      System.out.println("the master has ended");
      Runtime.getRuntime().halt(5);
    }, "master watch");
    t.setDaemon(true);
    t.start();
  }

  /** Returns when the master answers a call that it refuses until it is initialised. */
  private static void awaitMaster(Connection connection) throws Exception {
    for (long end = System.nanoTime() + 120_000_000_000L; ; Thread.sleep(50)) {
      try (Admin admin = connection.getAdmin()) {
        admin.listNamespaceDescriptors();
        return;
      } catch (java.io.IOException e) {
        if (System.nanoTime() > end) {
          throw e;
        }
      }
    }
  }
}
