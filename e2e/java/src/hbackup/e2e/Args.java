package hbackup.e2e;

import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.TableName;
import org.apache.hbase.thirdparty.com.google.gson.JsonArray;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;

/** The arguments of one call: a JSON object whose byte strings are in base 64. */
final class Args {
  private final JsonObject json;

  Args(JsonObject json) {
    this.json = json;
  }

  boolean has(String name) {
    return json.has(name) && !json.get(name).isJsonNull();
  }

  String text(String name) {
    if (!has(name)) {
      throw new IllegalArgumentException("argument " + name + " is missing");
    }
    return json.get(name).getAsString();
  }

  String text(String name, String otherwise) {
    return has(name) && !json.get(name).getAsString().isEmpty() ? json.get(name).getAsString() : otherwise;
  }

  long number(String name, long otherwise) {
    return has(name) ? json.get(name).getAsLong() : otherwise;
  }

  int count(String name, int otherwise) {
    return Math.toIntExact(number(name, otherwise));
  }

  boolean flag(String name) {
    return has(name) && json.get(name).getAsBoolean();
  }

  byte[] bytes(String name) {
    return has(name) ? Base64.getDecoder().decode(json.get(name).getAsString()) : null;
  }

  TableName table() {
    return TableName.valueOf(text("table"));
  }

  List<byte[]> bytesList(String name) {
    List<byte[]> out = new ArrayList<>();
    for (JsonElement e : array(name)) {
      out.add(Base64.getDecoder().decode(e.getAsString()));
    }
    return out;
  }

  List<String> texts(String name) {
    List<String> out = new ArrayList<>();
    for (JsonElement e : array(name)) {
      out.add(e.getAsString());
    }
    return out;
  }

  List<Args> objects(String name) {
    List<Args> out = new ArrayList<>();
    for (JsonElement e : array(name)) {
      out.add(new Args(e.getAsJsonObject()));
    }
    return out;
  }

  Map<String, String> pairs(String name) {
    Map<String, String> out = new LinkedHashMap<>();
    if (has(name)) {
      json.getAsJsonObject(name).entrySet().forEach(e -> out.put(e.getKey(), e.getValue().getAsString()));
    }
    return out;
  }

  private JsonArray array(String name) {
    return has(name) ? json.getAsJsonArray(name) : new JsonArray();
  }
}
