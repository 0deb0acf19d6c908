package hbackup.e2e;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.hbase.ArrayBackedTag;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Writes rows that follow from a seed: row i of seed s is always the same, whatever else is loaded. Only increments and
 * appends take the server's clock.
 */
final class Loader {
  /** First tag type that HBase leaves to applications. */
  private static final byte OWN_TAG = 65;

  private static final int BATCH = 500;

  private final Args a;
  private final List<byte[]> families = new ArrayList<>();
  private final int qualifiers;
  private final int versions;
  private final int valueBytes;
  private final long base;

  private Loader(Args a) {
    this.a = a;
    a.texts("families").forEach(f -> families.add(Bytes.toBytes(f)));
    qualifiers = Math.max(1, a.count("qualifiers", 1));
    versions = Math.max(1, a.count("versions", 1));
    valueBytes = a.count("valueBytes", 20);
    base = a.number("baseTime", 1_700_000_000_000L);
  }

  static void register(Driver driver, Connection connection, Admin admin) {
    driver.on("load", a -> new Loader(a).load(connection, admin));
  }

  /** The key of row i: eight digits that spread evenly over the key space, after the prefix. */
  static byte[] key(String prefix, long seed, long i) {
    long mixed = (i + seed * 0x9E3779B97F4A7C15L) * 0xBF58476D1CE4E5B9L;
    mixed = (mixed ^ (mixed >>> 31)) * 0x94D049BB133111EBL;
    return String.format("%s%08x-%06d", prefix, (mixed ^ (mixed >>> 29)) >>> 32, i).getBytes(StandardCharsets.US_ASCII);
  }

  private Map<String, Object> load(Connection connection, Admin admin) throws Exception {
    TableName name = a.table();
    if (families.isEmpty()) {
      Collections.addAll(families, admin.getDescriptor(name).getColumnFamilyNames().toArray(new byte[0][]));
    }
    long first = a.number("from", 0);
    long rows = a.number("rows", 0);
    int flushEvery = a.count("flushEvery", 0);
    Counts counts = new Counts();
    try (Table table = connection.getTable(name)) {
      for (long i = first; i < first + rows; ) {
        List<Put> puts = new ArrayList<>();
        List<Put> again = new ArrayList<>();
        List<Delete> deletes = new ArrayList<>();
        List<Mutation> adds = new ArrayList<>();
        long end = Math.min(first + rows, i + BATCH);
        if (flushEvery > 0) {
          end = Math.min(end, (i / flushEvery + 1) * flushEvery);
        }
        for (; i < end; i++) {
          row(i, puts, again, deletes, adds, counts);
        }
        table.put(puts);
        table.put(again);
        table.delete(deletes);
        for (Mutation m : adds) {
          if (m instanceof Increment) {
            table.increment((Increment) m);
          } else {
            table.append((Append) m);
          }
        }
        if (flushEvery > 0 && i % flushEvery == 0) {
          admin.flush(name);
        }
      }
    }
    Map<String, Object> out = new LinkedHashMap<>();
    out.put("rows", rows);
    out.put("puts", counts.puts);
    out.put("deletes", counts.deletes);
    out.put("adds", counts.adds);
    return out;
  }

  private static final class Counts {
    long puts;
    long deletes;
    long adds;
  }

  private void row(long i, List<Put> puts, List<Put> again, List<Delete> deletes, List<Mutation> adds, Counts counts) {
    Random random = random(i);
    byte[] row = key(a.text("prefix", ""), a.number("seed", 0), i);
    Put put = new Put(row);
    Put overwrite = new Put(row);
    boolean ttl = chance(random, "ttlPercent");
    for (byte[] family : families) {
      for (int q = 0; q < qualifiers; q++) {
        for (int v = 0; v < versions; v++) {
          add(put, family, qualifier(q), time(i, v), random);
          counts.puts++;
          if (chance(random, "overwritePercent")) {
            add(overwrite, family, qualifier(q), time(i, v), random);
            counts.puts++;
          }
        }
      }
    }
    if (ttl) {
      put.setTTL(a.number("ttlMillis", 86_400_000L));
    }
    puts.add(durable(put));
    if (!overwrite.isEmpty()) {
      again.add(durable(overwrite));
    }
    if (chance(random, "deletePercent")) {
      deletes.add(durable(delete(row, i, random)));
      counts.deletes++;
    }
    if (chance(random, "incrementPercent")) {
      adds.add(durable(new Increment(row).addColumn(families.get(0), Bytes.toBytes("counter"), 1 + random.nextInt(100))));
      counts.adds++;
    }
    if (chance(random, "appendPercent")) {
      adds.add(durable(new Append(row).addColumn(families.get(0), Bytes.toBytes("text"), Bytes.toBytes("+" + i))));
      counts.adds++;
    }
  }

  private Random random(long i) {
    return new Random(a.number("seed", 0) * 1_000_003L + i);
  }

  private long time(long i, int version) {
    return base + i * 10 + version;
  }

  private static byte[] qualifier(int q) {
    return Bytes.toBytes("q" + q);
  }

  private void add(Put put, byte[] family, byte[] qualifier, long ts, Random random) {
    byte[] value = value(random);
    if (!chance(random, "tagPercent")) {
      put.addColumn(family, qualifier, ts, value);
      return;
    }
    byte[] tag = new byte[1 + random.nextInt(8)];
    random.nextBytes(tag);
    Cell cell = Cells.tagged(put.getRow(), family, qualifier, ts, value, Collections.singletonList(new ArrayBackedTag(OWN_TAG, tag)));
    try {
      put.add(cell);
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  private byte[] value(Random random) {
    int size = valueBytes;
    if (chance(random, "bigPercent")) {
      size = a.count("bigBytes", 200_000);
    }
    byte[] value = new byte[size];
    random.nextBytes(value);
    return value;
  }

  /** One of HBase's four kinds, aimed at something that the row has. */
  private Delete delete(byte[] row, long i, Random random) {
    Delete delete = new Delete(row);
    byte[] family = families.get(random.nextInt(families.size()));
    byte[] qualifier = qualifier(random.nextInt(qualifiers));
    long ts = time(i, random.nextInt(versions));
    switch (random.nextInt(4)) {
      case 0:
        return delete.addColumn(family, qualifier, ts);
      case 1:
        return delete.addColumns(family, qualifier, ts);
      case 2:
        return delete.addFamily(family, ts);
      default:
        return delete.addFamilyVersion(family, ts);
    }
  }

  private boolean chance(Random random, String percent) {
    int p = a.count(percent, 0);
    return p > 0 && random.nextInt(100) < p;
  }

  private <M extends Mutation> M durable(M m) {
    if (a.flag("skipWAL")) {
      m.setDurability(Durability.SKIP_WAL);
    }
    return m;
  }
}
