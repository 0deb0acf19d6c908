package hbackup.e2e;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.util.Bytes;

/** Verbs about regions and their files: flush, compact, split, merge, move. */
final class Regions {
  private final Connection connection;
  private final Admin admin;

  private Regions(Connection connection, Admin admin) {
    this.connection = connection;
    this.admin = admin;
  }

  static void register(Driver driver, Connection connection, Admin admin) {
    Regions r = new Regions(connection, admin);
    driver.on("regions", a -> r.list(a.table()));
    driver.on("regionServers", a -> {
      List<String> out = new ArrayList<>();
      admin.getRegionServers().forEach(s -> out.add(s.getServerName()));
      out.sort(null);
      return out;
    });
    driver.on("flush", a -> {
      admin.flush(a.table());
      return true;
    });
    driver.on("compact", a -> r.compact(a.table(), a.flag("major"), a.flag("wait")));
    driver.on("compactionState", a -> admin.getCompactionState(a.table()).name());
    driver.on("split", a -> {
      admin.splitRegionAsync(Bytes.toBytes(a.text("region")), a.bytes("at")).get();
      return r.list(a.table());
    });
    driver.on("merge", a -> {
      byte[][] names = a.texts("regions").stream().map(Bytes::toBytes).toArray(byte[][]::new);
      admin.mergeRegionsAsync(names, true).get();
      return r.list(a.table());
    });
    driver.on("move", a -> r.move(a.text("region"), ServerName.valueOf(a.text("server")), a.table()));
  }

  private List<Map<String, Object>> list(TableName table) throws IOException {
    List<Map<String, Object>> out = new ArrayList<>();
    try (RegionLocator locator = connection.getRegionLocator(table)) {
      locator.clearRegionLocationCache();
      for (HRegionLocation l : locator.getAllRegionLocations()) {
        RegionInfo info = l.getRegion();
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("name", info.getRegionNameAsString());
        m.put("encoded", info.getEncodedName());
        m.put("startKey", Cells.base64(info.getStartKey()));
        m.put("endKey", Cells.base64(info.getEndKey()));
        m.put("server", l.getServerName() == null ? "" : l.getServerName().getServerName());
        out.add(m);
      }
    }
    return out;
  }

  /** With wait: returns when no compaction runs and, for a major one, every store has at most one file. */
  private Object compact(TableName table, boolean major, boolean wait) throws Exception {
    request(table, major);
    for (long asked = System.nanoTime(); wait; Thread.sleep(20)) {
      if (admin.getCompactionState(table) != CompactionState.NONE) {
        continue;
      }
      if (!major || storesAreSingle(table)) {
        break;
      }
      if (System.nanoTime() - asked > 2_000_000_000L) { // refused, for instance because a flush came between
        request(table, true);
        asked = System.nanoTime();
      }
    }
    return true;
  }

  private void request(TableName table, boolean major) throws IOException {
    if (major) {
      admin.majorCompact(table);
    } else {
      admin.compact(table);
    }
  }

  private boolean storesAreSingle(TableName table) throws IOException {
    for (ServerName server : admin.getRegionServers()) {
      for (RegionMetrics m : admin.getRegionMetrics(server, table)) {
        if (m.getStoreFileCount() > m.getStoreCount()) {
          return false;
        }
      }
    }
    return true;
  }

  private Object move(String encoded, ServerName to, TableName table) throws Exception {
    admin.move(Bytes.toBytes(encoded), to);
    for (;; Thread.sleep(20)) {
      for (Map<String, Object> m : list(table)) {
        if (m.get("encoded").equals(encoded) && m.get("server").equals(to.getServerName())) {
          return true;
        }
      }
    }
  }
}
