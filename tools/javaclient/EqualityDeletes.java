import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericAppenderFactory;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.EqualityDeleteWriter;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Deletes rows of a catalog's table by files of equality deletes, which Spark does not write: one for each row of {@code
 * rows}, whose {@code columns} are equal in what is deleted. The files have the newest spec, or if {@code global} is true
 * one without fields.
 */
final class EqualityDeletes {
  private EqualityDeletes() {}

  static ObjectNode commit(JsonNode request) throws IOException {
    try (RESTCatalog catalog = new RESTCatalog()) {
      catalog.initialize(
          "rest",
          Map.of(
              "uri", request.get("uri").asText(),
              "warehouse", request.get("warehouse").asText(),
              "io-impl", "org.apache.iceberg.hadoop.HadoopFileIO"));
      Table table = catalog.loadTable(TableIdentifier.parse(request.get("table").asText()));
      var delta = table.newRowDelta();
      for (JsonNode row : request.get("rows")) {
        delta.addDeletes(file(table, request, row));
      }
      delta.commit();
    }
    return JsonLines.JSON.createObjectNode();
  }

  private static DeleteFile file(Table table, JsonNode request, JsonNode row) throws IOException {
    List<String> columns = new ArrayList<>();
    request.get("columns").forEach(name -> columns.add(name.asText()));
    Schema schema = table.schema().select(columns);
    int[] ids = schema.columns().stream().mapToInt(field -> field.fieldId()).toArray();
    PartitionSpec spec = spec(table, request.get("global").asBoolean());
    PartitionKey partition = new PartitionKey(spec, table.schema());
    partition.partition(Rows.row(table.schema().asStruct(), row));
    String name = String.format("%s/data/equality-%s.parquet", table.location(), UUID.randomUUID());
    OutputFile output = table.io().newOutputFile(name);
    EqualityDeleteWriter<Record> writer =
        new GenericAppenderFactory(table, table.schema(), spec, Map.of(), ids, schema)
            .newEqDeleteWriter(EncryptedFiles.plainAsEncryptedOutput(output), FileFormat.PARQUET, partition);
    try (writer) {
      writer.write((Record) Rows.row(schema.asStruct(), row));
    }
    return writer.toDeleteFile();
  }

  private static PartitionSpec spec(Table table, boolean global) {
    return global
        ? table.specs().values().stream().filter(PartitionSpec::isUnpartitioned).findFirst().orElseThrow()
        : table.spec();
  }
}
