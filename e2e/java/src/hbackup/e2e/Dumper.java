package hbackup.e2e;

import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;

/** Writes every cell of a table to a file, in the order of a scan, and gives a digest of that file. */
final class Dumper {
  private Dumper() {}

  static void register(Driver driver, Connection connection) {
    driver.on("dump", a -> dump(connection, a));
  }

  private static Object dump(Connection connection, Args a) throws Exception {
    Scan scan = new Scan();
    scan.readAllVersions();
    scan.setRaw(a.flag("raw"));
    scan.setAllowPartialResults(true);
    scan.setCacheBlocks(false);
    scan.setMaxResultSize(4 << 20);
    if (a.has("startRow")) {
      scan.withStartRow(a.bytes("startRow"));
    }
    if (a.has("stopRow")) {
      scan.withStopRow(a.bytes("stopRow"));
    }
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    MessageDigest values = MessageDigest.getInstance("SHA-256");
    long cells = 0;
    long markers = 0;
    StringBuilder line = new StringBuilder();
    try (Table table = connection.getTable(a.table());
        ResultScanner scanner = table.getScanner(scan);
        OutputStream file = new BufferedOutputStream(new FileOutputStream(a.text("file")), 1 << 16);
        OutputStream out = new DigestOutputStream(file, digest)) {
      for (Result r : scanner) {
        for (Cell c : r.rawCells()) {
          line.setLength(0);
          Cells.line(line, c, values);
          out.write(line.toString().getBytes(StandardCharsets.US_ASCII));
          cells++;
          if (c.getType() != Cell.Type.Put) {
            markers++;
          }
        }
      }
    }
    Map<String, Object> result = new LinkedHashMap<>();
    result.put("cells", cells);
    result.put("markers", markers);
    result.put("digest", Cells.hex(digest.digest()));
    return result;
  }
}
