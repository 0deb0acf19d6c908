package hbackup.e2e;

import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

/**
 * One JVM with one kind of server in it. Arguments: the role and what it needs:
 *
 * <ul>
 *   <li>{@code hdfs [format]}: a name node and a data node;
 *   <li>{@code namenode [format|bootstrap]}: one name node of two; a line {@code active} or {@code standby} on standard
 *       input makes it that;
 *   <li>{@code datanode}: a data node;
 *   <li>{@code hbase N}: ZooKeeper, a master, N region servers and the driver; facts come as soon as they are known;
 *   <li>{@code regionserver}: a region server of a cluster whose master runs in another process;
 *   <li>{@code train FILE}: both, a little work, and an exit in good order, which writes a class archive.
 * </ul>
 *
 * <p>What is worth knowing goes to file descriptor 3, one {@code key=value} a line; the line {@code ready} is the last and
 * says that the servers answer. The process ends as soon as its standard input does, so it cannot outlive whoever
 * started it.
 */
public final class Host {
  private Host() {}

  public static void main(String[] args) throws Exception {
    watchStandardInput();
    DefaultMetricsSystem.setMiniClusterMode(true);
    try (Facts facts = new Facts()) {
      switch (args[0]) {
        case "hdfs":
          Hdfs.start(args.length > 1 && args[1].equals("format"), facts);
          break;
        case "namenode":
          NameNodes.start(args.length > 1 ? args[1] : "");
          break;
        case "datanode":
          NameNodes.startDataNode();
          break;
        case "hbase":
          HBase.start(HBaseConfiguration.create(), Integer.parseInt(args[1]), facts);
          break;
        case "regionserver":
          HBase.startRegionServer(HBaseConfiguration.create(), facts);
          break;
        case "train":
          facts.ready();
          train(facts, args[1]);
          return;
        default:
          throw new IllegalArgumentException("unknown role " + args[0]);
      }
      facts.ready();
    } catch (Throwable e) {
      e.printStackTrace();
      Runtime.getRuntime().halt(3);
    }
  }

  /** Loads the classes that servers and driver use, by using them. */
  private static void train(Facts facts, String file) throws Exception {
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
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Thread t = new Thread(() -> {
      try {
        for (String line; (line = in.readLine()) != null; ) {
          NameNodes.become(line);
        }
      } catch (IOException e) {
        // As good as the end.
      }
      Runtime.getRuntime().halt(4);
    }, "standard input watch");
    t.setDaemon(true);
    t.start();
  }

  /** Facts go out when they are put, the line {@code ready} at the end. */
  static final class Facts implements AutoCloseable {
    private final FileOutputStream out;

    Facts() throws IOException {
      out = new FileOutputStream("/dev/fd/3");
    }

    void put(String name, String value) throws IOException {
      write(name + "=" + value);
    }

    void ready() throws IOException {
      write("ready");
    }

    private void write(String line) throws IOException {
      out.write((line + "\n").getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public void close() throws IOException {
      out.close();
    }
  }
}
