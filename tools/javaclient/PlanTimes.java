import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.ExpressionParser;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * How long Iceberg's own planner takes: {@code java PlanTimes METADATA} reads a filter a line from its standard input,
 * plans a scan of the metadata file on local disk, and prints a JSON object with the number of files and deletes, and
 * the seconds until the first task and in all. Manifests are kept in memory. The first plan loads the table.
 */
public final class PlanTimes {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws IOException {
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err); // loggers may print
    FileIO files = new CachedFiles();
    BufferedReader filters = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    answers.println("ready");
    Table table = null;
    for (String line = filters.readLine(); line != null; line = filters.readLine()) {
      long began = System.nanoTime();
      if (table == null) {
        table = new BaseTable(new StaticTableOperations(arguments[0], files), "planned");
      }
      ObjectNode answer = plan(table, JSON.readTree(line), began);
      answer.put("wall_s", (System.nanoTime() - began) / 1e9);
      answers.println(JSON.writeValueAsString(answer));
    }
  }

  private static ObjectNode plan(Table table, JsonNode filter, long began) throws IOException {
    Expression expression = ExpressionParser.fromJson(filter.toString());
    long files = 0;
    long deletes = 0;
    double first = 0;
    try (CloseableIterable<FileScanTask> tasks = table.newScan().filter(expression).planFiles()) {
      for (FileScanTask task : tasks) {
        if (files == 0) {
          first = (System.nanoTime() - began) / 1e9;
        }
        task.residual();
        files += 1;
        deletes += task.deletes().size();
      }
    }
    ObjectNode answer = JSON.createObjectNode();
    answer.put("files", files);
    answer.put("deletes", deletes);
    answer.put("first_s", first);
    return answer;
  }

  /** Local files with the property that has Iceberg keep manifests in memory. */
  private static final class CachedFiles implements FileIO {
    private static final long serialVersionUID = 1L;
    private final LocalFiles files = new LocalFiles();

    @Override
    public Map<String, String> properties() {
      return Map.of("io.manifest.cache-enabled", "true");
    }

    @Override
    public InputFile newInputFile(String location) {
      return files.newInputFile(location);
    }

    @Override
    public OutputFile newOutputFile(String location) {
      return files.newOutputFile(location);
    }

    @Override
    public void deleteFile(String location) {
      files.deleteFile(location);
    }
  }
}
