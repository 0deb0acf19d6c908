package hbackup.e2e;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.LocalHBaseCluster;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.master.snapshot.SnapshotHFileCleaner;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.replication.ReplicationPeerDescription;
import org.apache.hadoop.hbase.util.JVMClusterUtil;

/** Verbs that make the cluster do now what it does by itself every few minutes, and that switch such work off. */
final class Chores {
  private Chores() {}

  static void register(Driver driver, Admin admin, LocalHBaseCluster cluster) {
    driver.on("runCatalogJanitor", a -> admin.runCatalogJanitor());
    driver.on("runCleaner", a -> admin.runCleanerChore());
    driver.on("refreshSnapshotCache", a -> {
      for (Object d : (List<?>) cluster.getActiveMaster().getHFileCleaner().getDelegatesForTesting()) {
        if (d instanceof SnapshotHFileCleaner) {
          ((SnapshotHFileCleaner) d).getFileCacheForTesting().triggerCacheRefreshForTesting();
        }
      }
      return true;
    });
    driver.on("setCleaner", a -> admin.cleanerChoreSwitch(a.flag("on")));
    driver.on("setBalancer", a -> admin.balancerSwitch(a.flag("on"), true));
    driver.on("setSplitMerge", a -> {
      admin.splitSwitch(a.flag("split"), true);
      admin.mergeSwitch(a.flag("merge"), true);
      return true;
    });
    driver.on("setCompaction", a -> {
      admin.compactionSwitch(a.flag("on"), new ArrayList<>());
      return true;
    });
    driver.on("rollLogs", a -> {
      for (ServerName s : admin.getRegionServers()) {
        admin.rollWALWriter(s);
      }
      return true;
    });
    driver.on("archiveCompacted", a -> archiveCompacted(cluster));
    driver.on("abortRegionServer", a -> {
      for (JVMClusterUtil.RegionServerThread t : cluster.getLiveRegionServers()) {
        if (t.getRegionServer().getServerName().getServerName().equals(a.text("server"))) {
          t.getRegionServer().abort("asked to");
          t.join();
          return true;
        }
      }
      throw new IllegalArgumentException("no region server " + a.text("server") + " in this process");
    });
    driver.on("startRegionServer", a -> {
      JVMClusterUtil.RegionServerThread t = cluster.addRegionServer();
      t.start();
      t.waitForServerOnline();
      return t.getRegionServer().getServerName().getServerName();
    });
    driver.on("listPeers", a -> {
      List<Map<String, Object>> out = new ArrayList<>();
      for (ReplicationPeerDescription p : admin.listReplicationPeers()) {
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("id", p.getPeerId());
        m.put("enabled", p.isEnabled());
        m.put("cluster", p.getPeerConfig().getClusterKey());
        out.add(m);
      }
      return out;
    });
    driver.on("shutdown", a -> {
      cluster.shutdown();
      return true;
    });
  }

  /** Moves files that a compaction has replaced to the archive, if no scan reads them; gives how many stores were looked at. */
  private static int archiveCompacted(LocalHBaseCluster cluster) throws Exception {
    int stores = 0;
    for (JVMClusterUtil.RegionServerThread t : cluster.getLiveRegionServers()) {
      for (HRegion region : t.getRegionServer().getRegions()) {
        for (HStore store : region.getStores()) {
          store.closeAndArchiveCompactedFiles();
          stores++;
        }
      }
    }
    return stores;
  }
}
