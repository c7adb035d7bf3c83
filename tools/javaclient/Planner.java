import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.ContentFileParser;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.IncrementalAppendScan;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Scan;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.expressions.Binder;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.ExpressionParser;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.types.Types;

/**
 * Iceberg's own scan planner, and what makes tables for it, a program of {@link JsonLines}. {@code make} writes a table into
 * a folder by the steps that {@link Tables} reads, {@code delete-equal} commits what {@link EqualityDeletes} writes;
 * {@code plan} plans a scan of a metadata file on local disk; {@code matches} evaluates a filter and residuals on rows.
 */
public final class Planner {
  private static final ObjectMapper JSON = JsonLines.JSON;

  public static void main(String[] arguments) throws IOException {
    JsonLines.serve(Planner::answer);
  }

  private static ObjectNode answer(JsonNode request) throws IOException {
    return switch (request.get("op").asText()) {
      case "make" -> Tables.make(request);
      case "plan" -> plan(request);
      case "matches" -> matches(request);
      case "delete-equal" -> EqualityDeletes.commit(request);
      default -> throw new IllegalArgumentException("no such op: " + request.get("op"));
    };
  }

  private static ObjectNode plan(JsonNode request) throws IOException {
    Table table = table(request);
    ObjectNode answer = JSON.createObjectNode();
    ArrayNode tasks = answer.putArray("tasks");
    try (CloseableIterable<FileScanTask> planned = scan(table, request).planFiles()) {
      for (FileScanTask task : planned) {
        tasks.add(task(table, task));
      }
    }
    return answer;
  }

  /** The table of a metadata file. With {@code at} it has a branch of this name at a snapshot, which the file has not. */
  private static Table table(JsonNode request) {
    LocalFiles files = new LocalFiles();
    TableMetadata metadata = TableMetadataParser.read(files, request.get("metadata").asText());
    if (request.hasNonNull("at")) {
      SnapshotRef branch = SnapshotRef.branchBuilder(request.get("at").asLong()).build();
      metadata = TableMetadata.buildFrom(metadata).setRef("at", branch).build();
    }
    return new BaseTable(new StaticTableOperations(metadata, files), "oracle");
  }

  private static Scan<?, FileScanTask, ?> scan(Table table, JsonNode request) {
    if (request.hasNonNull("to-snapshot") || request.hasNonNull("from-snapshot")) {
      IncrementalAppendScan scan = table.newIncrementalAppendScan();
      if (request.hasNonNull("from-snapshot")) {
        scan = scan.fromSnapshotExclusive(request.get("from-snapshot").asLong());
      }
      if (request.hasNonNull("to-snapshot")) {
        scan = scan.toSnapshot(request.get("to-snapshot").asLong());
      }
      return configured(scan, request);
    }
    TableScan scan = table.newScan();
    if (request.hasNonNull("ref")) {
      scan = scan.useRef(request.get("ref").asText());
    }
    if (request.hasNonNull("snapshot")) {
      scan = scan.useSnapshot(request.get("snapshot").asLong());
    }
    if (request.hasNonNull("at")) {
      scan = scan.useRef("at"); // under the schema that the table has now, as each branch
    }
    return configured(scan, request);
  }

  private static <S extends Scan<S, FileScanTask, ?>> S configured(S scan, JsonNode request) {
    boolean caseSensitive = request.get("case-sensitive").asBoolean();
    Expression filter = expression(request.get("filter"));
    Binder.bind(scan.schema().asStruct(), filter, caseSensitive); // a scan without manifests would not
    if (request.hasNonNull("stats")) {
      List<String> columns = new ArrayList<>();
      request.get("stats").forEach(name -> columns.add(name.asText()));
      scan = scan.includeColumnStats(columns);
    }
    return scan.caseSensitive(caseSensitive).filter(filter);
  }

  private static ObjectNode task(Table table, FileScanTask task) throws IOException {
    ObjectNode answer = JSON.createObjectNode();
    answer.set("residual", JSON.readTree(ExpressionParser.toJson(task.residual())));
    answer.set("data-file", file(table, task.file()));
    ArrayNode deletes = answer.putArray("deletes");
    for (DeleteFile delete : task.deletes()) {
      deletes.add(file(table, delete));
    }
    return answer;
  }

  /** Puts the file's partition into the types that the spec's columns have now, which Iceberg's writer of JSON wants. */
  private static JsonNode file(Table table, ContentFile<?> file) throws IOException {
    PartitionSpec spec = table.specs().get(file.specId());
    List<Types.NestedField> fields = spec.partitionType().fields();
    for (int position = 0; position < fields.size(); position += 1) {
      Object value = file.partition().get(position, Object.class);
      file.partition().set(position, Rows.promoted(value, fields.get(position).type()));
    }
    try {
      return JSON.readTree(ContentFileParser.toJson(file, spec));
    } catch (IllegalArgumentException | UnsupportedOperationException failure) {
      // of a spec whose fields are all void, or whose column was dropped
      ObjectNode brief = JSON.createObjectNode().put("file-path", file.location()).put("spec-id", spec.specId());
      return file instanceof DeleteFile deletes ? brief.put("content-offset", deletes.contentOffset()) : brief;
    }
  }

  /** For each file's rows whether the filter matches, and whether the residual does, by the schema of the scan. */
  private static ObjectNode matches(JsonNode request) throws IOException {
    Table table = table(request);
    Schema schema = table.schemas().get(request.get("schema-id").asInt());
    boolean caseSensitive = request.get("case-sensitive").asBoolean();
    RowFilter filter = new RowFilter(schema, expression(request.get("filter")), caseSensitive);
    ObjectNode answer = JSON.createObjectNode();
    ArrayNode files = answer.putArray("files");
    for (JsonNode file : request.get("files")) {
      RowFilter residual = new RowFilter(schema, expression(file.get("residual")), caseSensitive);
      ArrayNode rows = files.addArray();
      for (StructLike row : rows(table, file, schema)) {
        rows.addArray().add(filter.matches(row)).add(residual.matches(row));
      }
    }
    return answer;
  }

  /** The rows of a file by a schema: those that the request names, or those that a Parquet file has. */
  private static List<StructLike> rows(Table table, JsonNode file, Schema schema) throws IOException {
    if (!file.has("rows")) {
      return ParquetRows.of(file.get("path").asText(), schema);
    }
    Types.StructType written = table.schemas().get(file.get("schema-id").asInt()).asStruct();
    List<StructLike> rows = new ArrayList<>();
    file.get("rows").forEach(row -> rows.add(Rows.read(Rows.row(written, row), written, schema.asStruct())));
    return rows;
  }

  static Expression expression(JsonNode filter) {
    return ExpressionParser.fromJson(filter.toString());
  }
}
