package hbackup.e2e;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

/**
 * One JVM with one kind of server in it. Arguments: the role and what it needs:
 *
 * <ul>
 *   <li>{@code hdfs [format]}: a name node and a data node;
 *   <li>{@code hbase N}: ZooKeeper, a master, N region servers and the driver;
 *   <li>{@code regionservers N}: N region servers of a cluster whose master runs elsewhere;
 *   <li>{@code train}: both, a little work, and a clean exit (to write a class archive).
 * </ul>
 *
 * <p>When the servers answer, one line of {@code key=value} pairs goes to file descriptor 3. The process ends as
 * soon as its standard input does, so it cannot outlive whoever started it.
 */
public final class Host {
  private Host() {}

  public static void main(String[] args) throws Exception {
    watchStandardInput();
    DefaultMetricsSystem.setMiniClusterMode(true);
    try {
      Map<String, String> facts = new TreeMap<>();
      switch (args[0]) {
        case "hdfs":
          Hdfs.start(args.length > 1 && args[1].equals("format"), facts);
          break;
        case "hbase":
          HBase.start(Integer.parseInt(args[1]), facts);
          break;
        default:
          throw new IllegalArgumentException("unknown role " + args[0]);
      }
      report(facts);
    } catch (Throwable e) {
      e.printStackTrace();
      Runtime.getRuntime().halt(3);
    }
  }

  /** Ends the process when the other end of standard input is closed, which the kernel does even after kill -9. */
  private static void watchStandardInput() {
    InputStream in = System.in;
    Thread t = new Thread(() -> {
      try {
        while (in.read() >= 0) {
          // Nothing is ever sent; only the end counts.
        }
      } catch (IOException e) {
        // As good as the end.
      }
      Runtime.getRuntime().halt(4);
    }, "standard input watch");
    t.setDaemon(true);
    t.start();
  }

  private static void report(Map<String, String> facts) throws IOException {
    StringBuilder line = new StringBuilder("ready");
    facts.forEach((k, v) -> line.append(' ').append(k).append('=').append(v));
    line.append('\n');
    try (FileOutputStream out = new FileOutputStream("/dev/fd/3")) {
      out.write(line.toString().getBytes(StandardCharsets.UTF_8));
    }
  }
}
