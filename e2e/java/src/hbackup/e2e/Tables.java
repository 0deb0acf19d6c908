package hbackup.e2e;

import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.NamespaceExistException;
import org.apache.hadoop.hbase.NamespaceNotFoundException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.util.Bytes;

/** Verbs that make, change and end tables and name spaces. */
final class Tables {
  private Tables() {}

  static void register(Driver driver, Admin admin) {
    driver.on("createNamespace", a -> {
      NamespaceDescriptor.Builder b = NamespaceDescriptor.create(a.text("namespace"));
      a.pairs("configuration").forEach(b::addConfiguration);
      try {
        admin.createNamespace(b.build());
        return true;
      } catch (NamespaceExistException e) {
        return false;
      }
    });
    driver.on("deleteNamespace", a -> {
      admin.deleteNamespace(a.text("namespace"));
      return true;
    });
    driver.on("createTable", a -> {
      TableDescriptor table = descriptor(a);
      ensureNamespace(admin, table.getTableName());
      byte[][] splits = a.bytesList("splitKeys").toArray(new byte[0][]);
      if (splits.length == 0) {
        admin.createTable(table); // HBase 3.0 takes no null for no splits
      } else {
        admin.createTable(table, splits);
      }
      return true;
    });
    driver.on("modifyTable", a -> {
      admin.modifyTable(descriptor(a));
      return true;
    });
    driver.on("describe", a -> describe(admin.getDescriptor(a.table())));
    driver.on("listTables", a -> {
      Map<String, String> out = new TreeMap<>();
      for (TableName t : admin.listTableNames()) {
        out.put(t.getNameWithNamespaceInclAsString(), admin.isTableEnabled(t) ? "enabled" : "disabled");
      }
      return out;
    });
    driver.on("disable", a -> {
      admin.disableTable(a.table());
      return true;
    });
    driver.on("enable", a -> {
      admin.enableTable(a.table());
      return true;
    });
    driver.on("reopen", a -> {
      admin.disableTable(a.table());
      admin.enableTable(a.table());
      return true;
    });
    driver.on("drop", a -> {
      if (admin.isTableEnabled(a.table())) {
        admin.disableTable(a.table());
      }
      admin.deleteTable(a.table());
      return true;
    });
    driver.on("truncate", a -> {
      if (admin.isTableEnabled(a.table())) {
        admin.disableTable(a.table());
      }
      admin.truncateTable(a.table(), !a.flag("dropSplits"));
      return true;
    });
  }

  private static void ensureNamespace(Admin admin, TableName table) throws IOException {
    String name = table.getNamespaceAsString();
    try {
      admin.getNamespaceDescriptor(name);
    } catch (NamespaceNotFoundException e) {
      admin.createNamespace(NamespaceDescriptor.create(name).build());
    }
  }

  private static TableDescriptor descriptor(Args a) {
    TableDescriptorBuilder b = TableDescriptorBuilder.newBuilder(a.table());
    for (Args f : a.objects("families")) {
      b.setColumnFamily(family(f));
    }
    a.pairs("attributes").forEach(b::setValue);
    return b.build();
  }

  private static ColumnFamilyDescriptor family(Args f) {
    ColumnFamilyDescriptorBuilder b = ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes(f.text("name")));
    if (f.count("versions", 0) > 0) {
      b.setMaxVersions(f.count("versions", 1));
    }
    if (f.count("minVersions", 0) > 0) {
      b.setMinVersions(f.count("minVersions", 0));
    }
    if (f.count("ttl", 0) > 0) {
      b.setTimeToLive(f.count("ttl", 0));
    }
    if (f.count("blockSize", 0) > 0) {
      b.setBlocksize(f.count("blockSize", 0));
    }
    b.setCompressionType(Compression.Algorithm.valueOf(f.text("compression", "NONE")));
    b.setDataBlockEncoding(DataBlockEncoding.valueOf(f.text("encoding", "NONE")));
    b.setBloomFilterType(BloomType.valueOf(f.text("bloom", "ROW")));
    b.setKeepDeletedCells(KeepDeletedCells.valueOf(f.text("keepDeleted", "FALSE")));
    if (f.flag("mob")) {
      b.setMobEnabled(true);
      b.setMobThreshold(f.number("mobThreshold", 100 * 1024));
    }
    f.pairs("attributes").forEach(b::setValue);
    f.pairs("configuration").forEach(b::setConfiguration);
    return b.build();
  }

  /** A schema as plain strings, without the table's name, so that two tables can be compared. */
  private static Map<String, Object> describe(TableDescriptor table) {
    Map<String, Object> out = new TreeMap<>();
    Map<String, String> attributes = new TreeMap<>();
    table.getValues().forEach((k, v) -> attributes.put(Bytes.toString(k.copyBytes()), Bytes.toStringBinary(v.copyBytes())));
    out.put("attributes", attributes);
    Map<String, Object> families = new TreeMap<>();
    for (ColumnFamilyDescriptor f : table.getColumnFamilies()) {
      Map<String, String> values = new TreeMap<>();
      f.getValues().forEach((k, v) -> values.put(Bytes.toString(k.copyBytes()), Bytes.toStringBinary(v.copyBytes())));
      f.getConfiguration().forEach((k, v) -> values.put("configuration " + k, v));
      families.put(f.getNameAsString(), values);
    }
    out.put("families", families);
    return out;
  }
}
