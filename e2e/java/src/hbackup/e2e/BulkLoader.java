package hbackup.e2e;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.regionserver.HStoreFile;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;

/** Writes HFiles beside a table and has HBase take them over. */
final class BulkLoader {
  private BulkLoader() {}

  static void register(Driver driver, Configuration conf) {
    driver.on("bulkLoad", a -> load(conf, a));
  }

  private static Object load(Configuration conf, Args a) throws Exception {
    Path root = new Path(conf.get("hbase.rootdir"));
    FileSystem fs = root.getFileSystem(conf);
    Path dir = new Path(root.getParent(), "bulkload-" + UUID.randomUUID());
    long cells = 0;
    try {
      for (String family : a.texts("families")) {
        cells += write(conf, fs, new Path(new Path(dir, family), UUID.randomUUID().toString().replace("-", "")), family, a);
      }
      BulkLoadHFiles.create(conf).bulkLoad(a.table(), dir);
    } finally {
      fs.delete(dir, true);
    }
    Map<String, Object> out = new LinkedHashMap<>();
    out.put("cells", cells);
    return out;
  }

  private static long write(Configuration conf, FileSystem fs, Path path, String family, Args a) throws Exception {
    long seed = a.number("seed", 0);
    long first = a.number("from", 0);
    TreeMap<byte[], Long> rows = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    for (long i = first; i < first + a.number("rows", 0); i++) {
      rows.put(Loader.key(a.text("prefix", ""), seed, i), i);
    }
    HFile.Writer writer = HFile.getWriterFactoryNoCache(conf).withPath(fs, path)
        .withFileContext(new HFileContextBuilder().build()).create();
    long cells = 0;
    try {
      for (Map.Entry<byte[], Long> row : rows.entrySet()) {
        Random random = new Random(seed * 1_000_003L + row.getValue());
        byte[] value = new byte[a.count("valueBytes", 20)];
        random.nextBytes(value);
        writer.append(new KeyValue(row.getKey(), Bytes.toBytes(family), Bytes.toBytes("bulk"),
            a.number("baseTime", 1_700_000_000_000L) + row.getValue(), value));
        cells++;
      }
      writer.appendFileInfo(HStoreFile.BULKLOAD_TIME_KEY, Bytes.toBytes(System.currentTimeMillis()));
    } finally {
      writer.close();
    }
    return cells;
  }
}
