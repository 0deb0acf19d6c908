package hbackup.e2e;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.SnapshotType;

/** Verbs about HBase's snapshots. */
final class Snapshots {
  private Snapshots() {}

  static void register(Driver driver, Admin admin) {
    driver.on("snapshot", a -> {
      admin.snapshot(a.text("snapshot"), a.table(), SnapshotType.valueOf(a.text("type", "FLUSH")));
      return true;
    });
    driver.on("cloneSnapshot", a -> {
      admin.cloneSnapshot(a.text("snapshot"), a.table());
      return true;
    });
    driver.on("restoreSnapshot", a -> {
      TableName table = a.table();
      admin.disableTable(table);
      admin.restoreSnapshot(a.text("snapshot"));
      admin.enableTable(table);
      return true;
    });
    driver.on("deleteSnapshot", a -> {
      admin.deleteSnapshot(a.text("snapshot"));
      return true;
    });
    driver.on("listSnapshots", a -> {
      List<Map<String, Object>> out = new ArrayList<>();
      for (SnapshotDescription s : admin.listSnapshots()) {
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("name", s.getName());
        m.put("table", s.getTableName().getNameAsString());
        m.put("type", s.getType().name());
        m.put("created", s.getCreationTime());
        out.add(m);
      }
      return out;
    });
  }
}
