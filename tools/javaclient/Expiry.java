import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.ExpireSnapshots;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileMetadata;
import org.apache.iceberg.GenericStatisticsFile;
import org.apache.iceberg.ImmutableGenericPartitionStatisticsFile;
import org.apache.iceberg.ManageSnapshots;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionStatisticsFile;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotUpdate;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.types.Types;

/**
 * Iceberg's own expiry of snapshots, and what makes tables for it, a program of {@link JsonLines}. {@code make} writes
 * a table into a folder by steps, each one commit; {@code expire} expires the snapshots of a metadata file at a given
 * time, and names what it would delete. Data files, delete files and statistics are only named, never written. A file or
 * snapshot is named by its place among all, modulo their number.
 */
public final class Expiry {
  private static int expiries = 90_000;
  private static final Schema SCHEMA = new Schema(Types.NestedField.required(1, "id", Types.LongType.get()));

  public static void main(String[] arguments) throws IOException {
    JsonLines.serve(request -> request.get("op").asText().equals("make") ? make(request) : expire(request));
  }

  private static ObjectNode expire(JsonNode request) throws Exception {
    TableMetadata base = TableMetadataParser.read(new LocalFiles(), request.get("metadata").asText());
    LocalOperations operations =
        new LocalOperations(request.get("folder").asText(), base, expiries++); // beside the files of the table
    Table table = new BaseTable(operations, "oracle");
    ExpireSnapshots expiry = table.expireSnapshots();
    long now = request.get("now").asLong();
    Field clock = expiry.getClass().getDeclaredField("now"); // else a boundary could not be drawn
    clock.setAccessible(true);
    clock.set(expiry, now);
    long age =
        Long.parseLong(base.properties().getOrDefault("history.expire.max-snapshot-age-ms", "432000000"));
    expiry.expireOlderThan(now - age);
    if (request.get("reachable").asBoolean()) {
      Method incremental = expiry.getClass().getDeclaredMethod("withIncrementalCleanup", boolean.class);
      incremental.setAccessible(true);
      incremental.invoke(expiry, false);
    }
    Set<String> deleted = new TreeSet<>();
    expiry.deleteWith(
        file -> {
          synchronized (deleted) {
            deleted.add(file);
          }
        });
    expiry.commit();
    ObjectNode answer = JsonLines.JSON.createObjectNode();
    deleted.forEach(answer.putArray("deleted")::add);
    TableMetadata after = operations.current();
    answer.set("after", JsonLines.JSON.readTree(TableMetadataParser.toJson(after)));
    return answer;
  }

  private static ObjectNode make(JsonNode request) {
    LocalOperations operations = LocalOperations.create(request, SCHEMA, PartitionSpec.unpartitioned());
    Expiry made = new Expiry(new BaseTable(operations, "made"));
    ObjectNode answer = operations.take(request, made::take);
    ArrayNode named = answer.putArray("named");
    made.named.forEach(named::add);
    return answer;
  }

  private final Table table;
  private final List<DataFile> files = new ArrayList<>();
  private final Map<String, DeleteFile> vectors = new HashMap<>();
  private final List<String> named = new ArrayList<>();

  private Expiry(Table table) {
    this.table = table;
  }

  private void take(JsonNode step) {
    switch (step.get("do").asText()) {
      case "append" -> append(step);
      case "delete" -> on(step, table.newDelete().deleteFile(file(step, 0)));
      case "overwrite" -> {
        DataFile added = dataFile();
        on(step, table.newOverwrite().deleteFile(file(step, 0)).addFile(added));
        files.add(added);
      }
      case "rewrite" -> {
        DataFile added = dataFile();
        RewriteFiles rewrite = table.newRewrite().deleteFile(file(step, 0)).addFile(added);
        if (table.currentSnapshot() != null) {
          rewrite.validateFromSnapshot(table.currentSnapshot().snapshotId());
        }
        rewrite.commit();
        files.add(added);
      }
      case "manifests" -> table.rewriteManifests().clusterBy(file -> "one").commit();
      case "positions" -> on(step, table.newRowDelta().addDeletes(positions(step)));
      case "vectors" -> vectors(step);
      case "statistics" -> statistics(step);
      case "partition-statistics" -> partitionStatistics(step);
      case "property" ->
          table.updateProperties().set(step.get("key").asText(), step.get("value").asText()).commit();
      default -> manage(step);
    }
  }

  private void manage(JsonNode step) {
    ManageSnapshots manage = table.manageSnapshots();
    String name = step.path("name").asText();
    switch (step.get("do").asText()) {
      case "branch" -> manage.createBranch(name, snapshot(step));
      case "tag" -> manage.createTag(name, snapshot(step));
      case "remove-branch" -> manage.removeBranch(name);
      case "remove-tag" -> manage.removeTag(name);
      case "replace-branch" -> manage.replaceBranch(name, snapshot(step));
      case "rollback" -> manage.rollbackTo(table.currentSnapshot().parentId());
      case "set-current" -> manage.setCurrentSnapshot(snapshot(step));
      case "cherry-pick" -> manage.cherrypick(snapshot(step));
      case "ref-age" -> manage.setMaxRefAgeMs(name, step.get("ms").asLong());
      case "snapshot-age" -> manage.setMaxSnapshotAgeMs(name, step.get("ms").asLong());
      case "to-keep" -> manage.setMinSnapshotsToKeep(name, step.get("count").asInt());
      default -> throw new IllegalArgumentException("no such step: " + step);
    }
    manage.commit();
  }

  private long snapshot(JsonNode step) {
    List<Snapshot> all = new ArrayList<>();
    table.snapshots().forEach(all::add);
    return all.get(step.get("snapshot").asInt() % all.size()).snapshotId();
  }

  private DataFile file(JsonNode step, int further) {
    return files.get((step.get("file").asInt() + further) % files.size());
  }

  private String name(String kind) {
    String name = String.format("%s/data/%s-%05d", table.location(), kind, named.size());
    named.add(name);
    return name;
  }

  private DataFile dataFile() {
    return DataFiles.builder(table.spec())
        .withPath(name("data.parquet"))
        .withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(1000)
        .withRecordCount(10)
        .build();
  }

  private void append(JsonNode step) {
    AppendFiles append = step.get("merge").asBoolean() ? table.newAppend() : table.newFastAppend();
    List<DataFile> added = new ArrayList<>();
    for (int count = step.get("files").asInt(); count > 0; count--) {
      added.add(dataFile());
    }
    added.forEach(append::appendFile);
    if (step.path("staged").asBoolean()) {
      append.stageOnly();
    }
    on(step, append);
    files.addAll(added);
  }

  private DeleteFile positions(JsonNode step) {
    return FileMetadata.deleteFileBuilder(table.spec())
        .ofPositionDeletes()
        .withPath(name("positions.parquet"))
        .withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(100)
        .withRecordCount(1)
        .withReferencedDataFile(file(step, 0).location())
        .build();
  }

  /** One Puffin file with the deletion vectors of several data files. */
  private void vectors(JsonNode step) {
    String puffin = name("vectors.puffin");
    RowDelta delta = table.newRowDelta();
    Snapshot head = step.hasNonNull("branch") ? table.snapshot(step.get("branch").asText()) : table.currentSnapshot();
    if (head != null) {
      delta.validateFromSnapshot(head.snapshotId());
    }
    Map<String, DeleteFile> added = new HashMap<>();
    for (int place = 0; place < step.get("count").asInt(); place++) {
      String data = file(step, place).location();
      if (added.containsKey(data)) {
        continue;
      }
      DeleteFile vector =
          FileMetadata.deleteFileBuilder(table.spec())
              .ofPositionDeletes()
              .withPath(puffin)
              .withFormat(FileFormat.PUFFIN)
              .withFileSizeInBytes(500)
              .withRecordCount(1)
              .withReferencedDataFile(data)
              .withContentOffset(4 + 50L * place)
              .withContentSizeInBytes(40)
              .build();
      delta.addDeletes(vector);
      if (vectors.containsKey(data)) {
        delta.removeDeletes(vectors.get(data));
      }
      added.put(data, vector);
    }
    on(step, delta);
    vectors.putAll(added);
  }

  private void statistics(JsonNode step) {
    StatisticsFile file = new GenericStatisticsFile(snapshot(step), statisticsName(step), 10, 5, List.of());
    table.updateStatistics().setStatistics(file).commit();
  }

  private void partitionStatistics(JsonNode step) {
    PartitionStatisticsFile file =
        ImmutableGenericPartitionStatisticsFile.builder()
            .snapshotId(snapshot(step))
            .path(statisticsName(step))
            .fileSizeInBytes(10)
            .build();
    table.updatePartitionStatistics().setPartitionStatistics(file).commit();
  }

  private String statisticsName(JsonNode step) {
    return step.path("shared").asBoolean() ? table.location() + "/data/shared.stats" : name("stats");
  }

  private static void on(JsonNode step, SnapshotUpdate<?> update) {
    if (step.hasNonNull("branch")) {
      update.toBranch(step.get("branch").asText());
    }
    update.commit();
  }
}
