import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileMetadata;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Types;

/**
 * Tables by steps: each step is one commit of Iceberg's own API. Data files and delete files are only named, never
 * written; their partitions and statistics are those of the rows that a step names. A file is named by its place among
 * all that were added, modulo their number.
 */
final class Tables {
  private final Table table;
  private final List<DataFile> files = new ArrayList<>();
  private final ArrayNode rows = JsonLines.JSON.createArrayNode();
  private int names = 0;

  private Tables(Table table) {
    this.table = table;
  }

  static ObjectNode make(JsonNode request) {
    Schema schema = SchemaParser.fromJson(request.get("schema").toString());
    PartitionSpec spec = PartitionSpecParser.fromJson(schema, request.get("spec").toString());
    LocalOperations operations = LocalOperations.create(request, schema, spec);
    Tables tables = new Tables(new BaseTable(operations, "made"));
    ObjectNode answer = operations.take(request, tables::take);
    answer.set("rows", tables.rows); // of files whose number of records is true
    return answer;
  }

  private void take(JsonNode step) {
    switch (step.get("do").asText()) {
      case "append" -> append(step);
      case "delete" -> table.newDelete().deleteFile(file(step)).commit();
      case "positions" -> deletePositions(step);
      case "vector" -> deleteByVector(step);
      case "equality" -> deleteEqualRows(step);
      case "schema" -> Evolution.changeSchema(table, step.get("changes"));
      case "spec" -> Evolution.changeSpec(table, step.get("changes"));
      case "property" ->
          table.updateProperties().set(step.get("key").asText(), step.get("value").asText()).commit();
      case "branch" -> table.manageSnapshots().createBranch(step.get("name").asText()).commit();
      case "tag" ->
          table
              .manageSnapshots()
              .createTag(step.get("name").asText(), table.currentSnapshot().snapshotId())
              .commit();
      case "expire" ->
          table
              .expireSnapshots()
              .expireSnapshotId(table.snapshots().iterator().next().snapshotId())
              .cleanExpiredFiles(false)
              .commit();
      case "rewrite" -> table.rewriteManifests().clusterBy(file -> "one").commit();
      case "rollback" ->
          table.manageSnapshots().rollbackTo(table.currentSnapshot().parentId()).commit();
      default -> throw new IllegalArgumentException("no such step: " + step);
    }
  }

  private DataFile file(JsonNode step) {
    return files.get(step.get("file").asInt() % files.size());
  }

  private String name(String kind) {
    names += 1;
    return String.format("%s/data/%s-%05d", table.location(), kind, names);
  }

  private void append(JsonNode step) {
    AppendFiles append = step.get("merge").asBoolean() ? table.newAppend() : table.newFastAppend();
    List<DataFile> added = dataFiles(step.get("groups"));
    added.forEach(append::appendFile);
    if (step.hasNonNull("branch")) {
      append.toBranch(step.get("branch").asText());
    }
    append.commit();
    files.addAll(added);
  }

  private List<DataFile> dataFiles(JsonNode groups) {
    List<DataFile> made = new ArrayList<>();
    for (JsonNode group : groups) {
      for (List<JsonNode> partition : byPartition(table.spec(), group.get("rows"))) {
        made.add(dataFile(partition, group.get("options")));
      }
    }
    return made;
  }

  private DataFile dataFile(List<JsonNode> rows, JsonNode options) {
    String path = name("data") + ".parquet";
    if (!options.hasNonNull("records")) {
      ObjectNode record = this.rows.addObject();
      record.put("path", path).put("schema-id", table.schema().schemaId());
      record.putArray("rows").addAll(rows);
    }
    List<StructLike> structs = structs(rows);
    return DataFiles.builder(table.spec())
        .withPath(path)
        .withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(1000 + names)
        .withPartition(key(table.spec(), structs.get(0)))
        .withMetrics(Rows.metrics(table.schema().asStruct(), structs, options))
        .build();
  }

  private List<StructLike> structs(List<JsonNode> rows) {
    return rows.stream().map(row -> Rows.row(table.schema().asStruct(), row)).toList();
  }

  private PartitionKey key(PartitionSpec spec, StructLike row) {
    PartitionKey key = new PartitionKey(spec, table.schema());
    key.partition(row);
    return key;
  }

  private List<List<JsonNode>> byPartition(PartitionSpec spec, JsonNode rows) {
    Map<PartitionKey, List<JsonNode>> partitions = new LinkedHashMap<>();
    for (JsonNode row : rows) {
      PartitionKey key = key(spec, Rows.row(table.schema().asStruct(), row));
      partitions.computeIfAbsent(key, none -> new ArrayList<>()).add(row);
    }
    return List.copyOf(partitions.values());
  }

  private void deletePositions(JsonNode step) {
    DataFile file = file(step);
    FileMetadata.Builder delete = deleteFile(file).ofPositionDeletes().withPath(name("positions") + ".parquet");
    switch (step.get("scope").asText()) {
      case "referenced" -> delete.withReferencedDataFile(file.location());
      case "bounds" -> delete.withMetrics(pathBounds(file.location(), file.location()));
      case "wide" -> delete.withMetrics(pathBounds(file.location(), file.location() + "x"));
      default -> delete.withRecordCount(1);
    }
    commit(step, table.newRowDelta().addDeletes(delete.build()));
  }

  private FileMetadata.Builder deleteFile(DataFile file) {
    PartitionSpec spec = table.specs().get(file.specId());
    return FileMetadata.deleteFileBuilder(spec)
        .withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(500 + names)
        .withRecordCount(1)
        .withPartition(file.partition());
  }

  private static Metrics pathBounds(String lower, String upper) {
    int id = MetadataColumns.DELETE_FILE_PATH.fieldId();
    return new Metrics(
        1L,
        null,
        Map.of(id, 1L),
        Map.of(id, 0L),
        null,
        Map.of(id, Conversions.toByteBuffer(Types.StringType.get(), lower)),
        Map.of(id, Conversions.toByteBuffer(Types.StringType.get(), upper)));
  }

  private void deleteByVector(JsonNode step) {
    DataFile file = file(step);
    DeleteFile delete =
        deleteFile(file)
            .ofPositionDeletes()
            .withPath(name("vectors") + ".puffin")
            .withFormat(FileFormat.PUFFIN)
            .withReferencedDataFile(file.location())
            .withContentOffset(4 + names)
            .withContentSizeInBytes(40)
            .build();
    commit(step, table.newRowDelta().addDeletes(delete));
  }

  private void deleteEqualRows(JsonNode step) {
    PartitionSpec spec =
        step.get("global").asBoolean()
            ? table.specs().values().stream().filter(each -> each.isUnpartitioned()).findFirst().orElse(table.spec())
            : table.spec();
    List<Types.NestedField> columns = new ArrayList<>();
    step.get("columns").forEach(name -> columns.add(table.schema().findField(name.asText())));
    int[] ids = columns.stream().mapToInt(Types.NestedField::fieldId).toArray();
    RowDelta delta = table.newRowDelta();
    for (List<JsonNode> rows : byPartition(spec, step.get("rows"))) {
      List<StructLike> structs = structs(rows);
      Types.StructType projected = Types.StructType.of(columns);
      List<StructLike> keys = rows.stream().map(row -> Rows.row(projected, row)).toList();
      delta.addDeletes(
          FileMetadata.deleteFileBuilder(spec)
              .ofEqualityDeletes(ids)
              .withPath(name("equality") + ".parquet")
              .withFormat(FileFormat.PARQUET)
              .withFileSizeInBytes(500 + names)
              .withPartition(key(spec, structs.get(0)))
              .withMetrics(Rows.metrics(projected, keys, step.get("options")))
              .build());
    }
    commit(step, delta);
  }

  /** The data files of {@code groups} are added by the same commit, so they have the sequence number of the deletes. */
  private void commit(JsonNode step, RowDelta delta) {
    List<DataFile> added = step.hasNonNull("groups") ? dataFiles(step.get("groups")) : List.of();
    added.forEach(delta::addRows);
    if (step.hasNonNull("branch")) {
      delta.toBranch(step.get("branch").asText());
    }
    delta.commit();
    files.addAll(added);
  }
}
