import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.function.Consumer;
import org.apache.iceberg.LocationProviders;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;

/** One writer's table in a folder: each commit writes the next metadata file. */
final class LocalOperations implements TableOperations {
  private final String folder;
  private TableMetadata current;
  private int version;

  /** A table whose current metadata is given, null if there is none, and the number of the next metadata file. */
  LocalOperations(String folder, TableMetadata current, int version) {
    this.folder = folder;
    this.current = current;
    this.version = version;
  }

  /** A new table in the {@code folder} of a request, with its {@code properties}. */
  static LocalOperations create(JsonNode request, Schema schema, PartitionSpec spec) {
    String folder = request.get("folder").asText();
    Map<String, String> properties = new HashMap<>();
    request.get("properties").fields().forEachRemaining(entry -> properties.put(entry.getKey(), entry.getValue().asText()));
    LocalOperations operations = new LocalOperations(folder, null, 0);
    operations.commit(
        null, TableMetadata.newTableMetadata(schema, spec, SortOrder.unsorted(), folder, properties));
    return operations;
  }

  /** Takes the {@code steps} of a request, and answers with those that failed and the metadata file after them. */
  ObjectNode take(JsonNode request, Consumer<JsonNode> change) {
    ObjectNode answer = JsonLines.JSON.createObjectNode();
    ArrayNode failed = answer.putArray("failed");
    for (JsonNode step : request.get("steps")) {
      try {
        change.accept(step);
      } catch (RuntimeException failure) {
        failed.add(step.get("do").asText() + ": " + failure);
      }
    }
    return answer.put("metadata", current.metadataFileLocation());
  }

  @Override
  public TableMetadata current() {
    return current;
  }

  @Override
  public TableMetadata refresh() {
    return current;
  }

  @Override
  public void commit(TableMetadata base, TableMetadata metadata) {
    if (base != current) {
      throw new CommitFailedException("another base");
    }
    String location = metadataFileLocation(String.format("%05d-%s.metadata.json", version, new UUID(0, version)));
    version += 1;
    TableMetadataParser.write(metadata, io().newOutputFile(location));
    current = TableMetadataParser.read(io(), location);
  }

  @Override
  public FileIO io() {
    return new LocalFiles();
  }

  @Override
  public String metadataFileLocation(String name) {
    return folder + "/metadata/" + name;
  }

  @Override
  public LocationProvider locationProvider() {
    return LocationProviders.locationsFor(folder, current == null ? Map.of() : current.properties());
  }
}
