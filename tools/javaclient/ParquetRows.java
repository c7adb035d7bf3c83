import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.Schema;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetReaders;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.parquet.Parquet;

/** The rows of data files in Parquet as Iceberg's reader gives them by a schema. Those that were read are kept. */
final class ParquetRows {
  private static final Map<String, List<StructLike>> READ = new HashMap<>();

  private ParquetRows() {}

  static List<StructLike> of(String location, Schema schema) throws IOException {
    String key = schema.schemaId() + " " + location;
    if (!READ.containsKey(key)) {
      READ.put(key, read(location, schema));
    }
    return READ.get(key);
  }

  private static List<StructLike> read(String location, Schema schema) throws IOException {
    List<StructLike> rows = new ArrayList<>();
    InternalRecordWrapper internal = new InternalRecordWrapper(schema.asStruct());
    try (CloseableIterable<Record> records =
        Parquet.read(new LocalFiles().newInputFile(location))
            .project(schema)
            .createReaderFunc(file -> GenericParquetReaders.buildReader(schema, file))
            .build()) {
      records.forEach(record -> rows.add(internal.copyFor(record)));
    }
    return rows;
  }
}
