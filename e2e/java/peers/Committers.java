import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.JobID;
import org.apache.hadoop.mapreduce.OutputCommitter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.committer.manifest.ManifestCommitter;
import org.apache.hadoop.mapreduce.task.JobContextImpl;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.hadoop.util.GenericOptionsParser;

/**
 * Commits files with one of Hadoop's own output committers, in this process and without YARN, and prints a line of JSON for each round: seconds of
 * writing, of all task commits and of the job's commit, and the requests of S3A in the latter two. The first round is that of a cold JVM.
 *
 * <p>Arguments: v1|v2|magic|manifest OUTPUT FILES BYTES TASKS ROUNDS, after Hadoop's generic options. All tasks are at work at the same time.
 */
public final class Committers {
  private final String kind;
  private final int files, tasks;
  private final byte[] data;
  private final Configuration base;
  private final ExecutorService pool;

  private Committers(String kind, int files, int bytes, int tasks, Configuration base) {
    this.kind = kind;
    this.files = files;
    this.tasks = tasks;
    this.base = base;
    this.data = new byte[bytes];
    this.pool = Executors.newFixedThreadPool(tasks);
    new SplittableRandom(3).nextBytes(data);
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = new Configuration();
    String[] a = new GenericOptionsParser(conf, args).getRemainingArgs();
    conf.setInt("mapreduce.fileoutputcommitter.algorithm.version", a[0].equals("v2") ? 2 : 1);
    conf.setBoolean("fs.s3a.committer.magic.enabled", true);
    // The data node's report of the last block is else waited for in steps of 400 ms.
    conf.setInt("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", 5);
    Committers c = new Committers(a[0], Integer.parseInt(a[2]), Integer.parseInt(a[3]), Integer.parseInt(a[4]), conf);
    for (int round = 1; round <= Integer.parseInt(a[5]); round++) {
      c.round(new Path(a[1] + "-" + round), round);
    }
    System.exit(0); // file systems leave threads behind
  }

  private void round(Path out, int round) throws Exception {
    FileSystem fs = out.getFileSystem(base);
    fs.delete(out, true);
    JobID id = new JobID("202601010000", round);
    JobConf conf = new JobConf(base);
    conf.set("mapreduce.job.id", id.toString());
    conf.set("mapreduce.output.fileoutputformat.outputdir", out.toString());
    conf.set("fs.s3a.committer.uuid", UUID.randomUUID().toString());
    JobContextImpl job = new JobContextImpl(conf, id);
    OutputCommitter driver = committer(out, attempt(conf, new TaskID(id, TaskType.JOB_SETUP, 0)));
    driver.setupJob(job);
    TaskAttemptContext[] attempts = new TaskAttemptContext[tasks];
    OutputCommitter[] committers = new OutputCommitter[tasks];
    for (int i = 0; i < tasks; i++) {
      attempts[i] = attempt(conf, new TaskID(id, TaskType.MAP, i));
      committers[i] = committer(out, attempts[i]);
    }
    long start = System.nanoTime();
    all(i -> write(committers[i], attempts[i], i));
    long written = System.nanoTime(), before = requests(fs);
    all(i -> {
      if (committers[i].needsTaskCommit(attempts[i])) {
        committers[i].commitTask(attempts[i]);
      }
      return null;
    });
    long tasksDone = System.nanoTime(), between = requests(fs);
    driver.commitJob(job);
    long jobDone = System.nanoTime(), after = requests(fs);
    int good = 0;
    for (FileStatus s : fs.listStatus(out)) {
      if (s.getPath().getName().startsWith("part-") && s.getLen() == data.length) {
        good++;
      }
    }
    if (good != files) {
      throw new IllegalStateException(good + " of " + files + " files are there");
    }
    System.out.printf("{\"round\": %d, \"write_seconds\": %.4f, \"task_seconds\": %.4f, \"job_seconds\": %.4f, \"task_requests\": %d, \"job_requests\": %d}%n",
        round, (written - start) / 1e9, (tasksDone - written) / 1e9, (jobDone - tasksDone) / 1e9, between - before, after - between);
    fs.delete(out, true);
  }

  private Void write(OutputCommitter c, TaskAttemptContext attempt, int task) throws Exception {
    c.setupTask(attempt);
    Path work = ((PathOutputCommitter) c).getWorkPath();
    FileSystem fs = work.getFileSystem(attempt.getConfiguration());
    for (int i = task; i < files; i += tasks) {
      try (FSDataOutputStream s = fs.create(new Path(work, String.format("part-%05d", i)), false)) {
        s.write(data);
      }
    }
    return null;
  }

  private static TaskAttemptContext attempt(JobConf job, TaskID task) {
    TaskAttemptID id = new TaskAttemptID(task, 0);
    JobConf conf = new JobConf(job);
    conf.set("mapreduce.task.attempt.id", id.toString());
    conf.setInt("mapreduce.task.partition", task.getId());
    return new TaskAttemptContextImpl(conf, id);
  }

  private OutputCommitter committer(Path out, TaskAttemptContext attempt) throws Exception {
    switch (kind) {
      case "v1":
      case "v2":
        return new FileOutputCommitter(out, attempt);
      case "manifest":
        return new ManifestCommitter(out, attempt);
      case "magic": // S3A's jar is there only for S3
        return (OutputCommitter) Class.forName("org.apache.hadoop.fs.s3a.commit.magic.MagicS3GuardCommitter")
            .getConstructor(Path.class, TaskAttemptContext.class).newInstance(out, attempt);
      default:
        throw new IllegalArgumentException(kind);
    }
  }

  private interface PerTask {
    Void run(int task) throws Exception;
  }

  private void all(PerTask work) throws Exception {
    List<Callable<Void>> calls = new ArrayList<>();
    for (int i = 0; i < tasks; i++) {
      int task = i;
      calls.add(() -> work.run(task));
    }
    for (Future<Void> f : pool.invokeAll(calls)) {
      f.get();
    }
  }

  /** The requests of S3A so far; 0 on other file systems, which do not count them. */
  private static long requests(FileSystem fs) {
    IOStatistics s = fs instanceof IOStatisticsSource ? ((IOStatisticsSource) fs).getIOStatistics() : null;
    return s == null ? 0 : s.counters().getOrDefault("store_io_request", 0L);
  }
}
