package hbackup.e2e;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.Reader;
import java.io.StringReader;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.hbase.thirdparty.com.google.gson.Gson;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.gson.JsonParser;

/**
 * Calls over HTTP on the loopback interface: {@code POST /verb} with a JSON object answers 200 with a JSON value, or
 * 500 with {@code {"class", "message", "trace"}}.
 */
final class Driver {
  /** One call. The result is anything that Gson writes; byte strings are to be in base 64. */
  interface Verb {
    Object call(Args args) throws Exception;
  }

  private final Map<String, Verb> verbs = new TreeMap<>();
  private final Gson gson = new Gson();

  void on(String name, Verb verb) {
    if (verbs.put(name, verb) != null) {
      throw new IllegalStateException("two verbs named " + name);
    }
  }

  /** Listens on a port that the kernel chooses and gives it. */
  int listen() throws IOException {
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    ExecutorService pool = Executors.newCachedThreadPool(r -> {
      Thread t = new Thread(r, "driver");
      t.setDaemon(true);
      return t;
    });
    server.setExecutor(pool);
    server.createContext("/", this::handle);
    server.start();
    return server.getAddress().getPort();
  }

  private void handle(HttpExchange exchange) throws IOException {
    int status = 200;
    Object result;
    try {
      Reader body = new InputStreamReader(exchange.getRequestBody(), StandardCharsets.UTF_8);
      result = call(exchange.getRequestURI().getPath().substring(1), body);
    } catch (Throwable e) {
      status = 500;
      result = failure(e);
    }
    byte[] text = gson.toJson(result).getBytes(StandardCharsets.UTF_8);
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    exchange.sendResponseHeaders(status, text.length);
    exchange.getResponseBody().write(text);
    exchange.close();
  }

  /** The same call from inside. */
  Object call(String name, String body) throws Exception {
    return call(name, new StringReader(body));
  }

  private Object call(String name, Reader body) throws Exception {
    Verb verb = verbs.get(name);
    if (verb == null) {
      throw new IllegalArgumentException("no verb " + name + "; there are " + verbs.keySet());
    }
    return verb.call(new Args(parse(body)));
  }

  @SuppressWarnings("deprecation") // the newer static method is not in every version's library
  private static JsonObject parse(Reader body) {
    return new JsonParser().parse(body).getAsJsonObject();
  }

  private static Map<String, String> failure(Throwable e) {
    StringWriter trace = new StringWriter();
    e.printStackTrace(new PrintWriter(trace));
    Map<String, String> out = new TreeMap<>();
    out.put("class", e.getClass().getName());
    out.put("message", String.valueOf(e.getMessage()));
    out.put("trace", trace.toString());
    return out;
  }
}
