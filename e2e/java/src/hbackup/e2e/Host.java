package hbackup.e2e;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

/**
 * One JVM with one kind of server in it. Arguments: the role and what it needs:
 *
 * <ul>
 *   <li>{@code hdfs [format]}: a name node and a data node;
 *   <li>{@code hbase N}: ZooKeeper, a master, N region servers and the driver;
 *   <li>{@code train FILE}: both, a little work, and an exit in good order, which writes a class archive.
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
          HBase.start(HBaseConfiguration.create(), Integer.parseInt(args[1]), facts);
          break;
        case "train":
          report(facts);
          train(args[1]);
          return;
        default:
          throw new IllegalArgumentException("unknown role " + args[0]);
      }
      report(facts);
    } catch (Throwable e) {
      e.printStackTrace();
      Runtime.getRuntime().halt(3);
    }
  }

  /** Loads the classes that servers and driver use, by using them. */
  private static void train(String file) throws Exception {
    Map<String, String> facts = new TreeMap<>();
    String fs = Hdfs.start(true, facts).get("fs.defaultFS");
    Configuration conf = HBaseConfiguration.create();
    conf.set("fs.defaultFS", fs);
    conf.set("hbase.rootdir", fs + "/hbase");
    Driver driver = HBase.start(conf, 1, facts);
    String table = "'table':'t'";
    driver.call("createTable", "{" + table + ",'families':[{'name':'a'}],'splitKeys':['OA==']}");
    driver.call("load", "{" + table + ",'rows':200,'deletePercent':10,'tagPercent':10,'incrementPercent':5}");
    driver.call("flush", "{" + table + "}");
    driver.call("snapshot", "{" + table + ",'snapshot':'s'}");
    driver.call("cloneSnapshot", "{'table':'u','snapshot':'s'}");
    driver.call("compact", "{" + table + ",'major':true,'wait':true}");
    driver.call("dump", "{" + table + ",'raw':true,'file':'" + file + "'}");
    driver.call("drop", "{" + table + "}");
    System.exit(0);
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
