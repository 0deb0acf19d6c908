package hbackup.e2e;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.hbase.ArrayBackedTag;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.Tag;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/** Cells from and to text, and the verbs that write single ones. */
final class Cells {
  /** Values up to this size appear whole in a dump, longer ones as length and SHA-256. */
  private static final int WHOLE = 96;

  private static final char[] HEX = "0123456789abcdef".toCharArray();

  private Cells() {}

  static void register(Driver driver, Connection connection) {
    driver.on("put", a -> {
      try (Table table = connection.getTable(a.table())) {
        for (Args c : a.objects("cells")) {
          // As a list of one: only batches go out as cell blocks, and only those carry tags.
          table.put(Collections.singletonList(put(c)));
        }
      }
      return true;
    });
    driver.on("delete", a -> {
      try (Table table = connection.getTable(a.table())) {
        for (Args c : a.objects("cells")) {
          table.delete(delete(c));
        }
      }
      return true;
    });
  }

  private static Put put(Args c) throws Exception {
    long ts = c.number("timestamp", 0);
    Put put = new Put(c.bytes("row"));
    byte[] family = Bytes.toBytes(c.text("family"));
    byte[] qualifier = orEmpty(c.bytes("qualifier"));
    byte[] value = orEmpty(c.bytes("value"));
    List<Tag> tags = new ArrayList<>();
    for (Args t : c.objects("tags")) {
      tags.add(new ArrayBackedTag((byte) t.count("type", 0), orEmpty(t.bytes("value"))));
    }
    long at = ts == 0 ? Long.MAX_VALUE : ts; // LATEST_TIMESTAMP: the server's clock
    if (tags.isEmpty()) {
      put.addColumn(family, qualifier, at, value);
    } else {
      put.add(tagged(put.getRow(), family, qualifier, at, value, tags));
    }
    if (c.number("ttl", 0) > 0) {
      put.setTTL(c.number("ttl", 0));
    }
    return put;
  }

  static Cell tagged(byte[] row, byte[] family, byte[] qualifier, long ts, byte[] value, List<Tag> tags) {
    return new KeyValue(row, family, qualifier, ts, KeyValue.Type.Put, value, tags);
  }

  private static Delete delete(Args c) {
    long ts = c.number("timestamp", 0);
    long at = ts == 0 ? Long.MAX_VALUE : ts;
    Delete delete = new Delete(c.bytes("row"));
    byte[] family = Bytes.toBytes(c.text("family"));
    byte[] qualifier = orEmpty(c.bytes("qualifier"));
    switch (c.text("type")) {
      case "Delete":
        return delete.addColumn(family, qualifier, at);
      case "DeleteColumn":
        return delete.addColumns(family, qualifier, at);
      case "DeleteFamily":
        return delete.addFamily(family, at);
      case "DeleteFamilyVersion":
        return delete.addFamilyVersion(family, at);
      default:
        throw new IllegalArgumentException("no kind of delete: " + c.text("type"));
    }
  }

  /** One line of a dump: row, family, qualifier, timestamp, type, value, tags, with tabs between. No table, no region. */
  static void line(StringBuilder out, Cell c, MessageDigest sha) {
    escape(out, c.getRowArray(), c.getRowOffset(), c.getRowLength());
    out.append('\t');
    escape(out, c.getFamilyArray(), c.getFamilyOffset(), c.getFamilyLength());
    out.append('\t');
    escape(out, c.getQualifierArray(), c.getQualifierOffset(), c.getQualifierLength());
    out.append('\t').append(c.getTimestamp()).append('\t').append(c.getType().name()).append('\t');
    if (c.getValueLength() <= WHOLE) {
      escape(out, c.getValueArray(), c.getValueOffset(), c.getValueLength());
    } else {
      sha.reset();
      sha.update(c.getValueArray(), c.getValueOffset(), c.getValueLength());
      out.append('#').append(c.getValueLength()).append(':').append(hex(sha.digest()));
    }
    out.append('\t');
    List<String> tags = new ArrayList<>();
    for (Iterator<Tag> i = tags(c); i.hasNext(); ) {
      Tag t = i.next();
      StringBuilder s = new StringBuilder().append(t.getType() & 0xff).append('=');
      byte[] v = Tag.cloneValue(t);
      escape(s, v, 0, v.length);
      tags.add(s.toString());
    }
    out.append(String.join(",", tags)).append('\n');
  }

  private static Iterator<Tag> tags(Cell c) {
    return PrivateCellUtil.tagsIterator(c);
  }

  /** Printable ASCII but backslash, comma and number sign as it is, everything else as \xHH: one text per byte string. */
  static void escape(StringBuilder out, byte[] b, int offset, int length) {
    for (int i = offset; i < offset + length; i++) {
      int c = b[i] & 0xff;
      if (c > ' ' && c < 0x7f && c != '\\' && c != ',' && c != '#') {
        out.append((char) c);
      } else {
        out.append("\\x").append(HEX[c >> 4]).append(HEX[c & 15]);
      }
    }
  }

  static String hex(byte[] b) {
    StringBuilder out = new StringBuilder(2 * b.length);
    for (byte x : b) {
      out.append(HEX[(x >> 4) & 15]).append(HEX[x & 15]);
    }
    return out.toString();
  }

  static String base64(byte[] b) {
    return new String(Base64.getEncoder().encode(b), StandardCharsets.US_ASCII);
  }

  static byte[] orEmpty(byte[] b) {
    return b == null ? new byte[0] : b;
  }
}
