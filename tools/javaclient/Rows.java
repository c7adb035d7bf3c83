import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.SingleValueParser;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.types.Comparators;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.BinaryUtil;
import org.apache.iceberg.util.NaNUtil;
import org.apache.iceberg.util.UnicodeUtil;

/** Rows of a schema as JSON objects by the columns' names, and the statistics that a writer would keep of them. */
final class Rows {
  private Rows() {}

  static StructLike row(Types.StructType type, JsonNode json) {
    GenericRecord row = GenericRecord.create(type);
    List<Types.NestedField> fields = type.fields();
    for (int position = 0; position < fields.size(); position += 1) {
      Types.NestedField field = fields.get(position);
      row.set(position, value(field.type(), json.get(field.name())));
    }
    return row;
  }

  /** A row of one schema of a table as a reader sees it by another: columns by id, promoted where their types were. */
  static StructLike read(StructLike row, Types.StructType written, Types.StructType schema) {
    if (row == null) {
      return null;
    }
    GenericRecord read = GenericRecord.create(schema);
    for (int position = 0; position < schema.fields().size(); position += 1) {
      Types.NestedField field = schema.fields().get(position);
      int at = written.fields().indexOf(written.field(field.fieldId()));
      Object value = at < 0 ? null : row.get(at, Object.class);
      if (field.type().isStructType() && value != null) {
        value = read((StructLike) value, written.fields().get(at).type().asStructType(), field.type().asStructType());
      }
      read.set(position, promoted(value, field.type()));
    }
    return read;
  }

  /** A value of a type that may have been promoted since. */
  static Object promoted(Object value, Type type) {
    if (value instanceof Integer number && type.typeId() == Type.TypeID.LONG) {
      return number.longValue();
    }
    return value instanceof Float number && type.typeId() == Type.TypeID.DOUBLE ? number.doubleValue() : value;
  }

  /** A value of single-value JSON, in which a float may be a whole number, "NaN", "Infinity" or "-Infinity". */
  static Object value(Type type, JsonNode json) {
    if (json == null || json.isNull()) {
      return null;
    }
    return switch (type.typeId()) {
      case STRUCT -> row(type.asStructType(), json);
      case FLOAT -> Float.parseFloat(json.asText());
      case DOUBLE -> Double.parseDouble(json.asText());
      default -> SingleValueParser.fromJson(type, json);
    };
  }

  /**
   * The statistics of rows. Bounds of strings and binaries are cut to {@code options.truncate}; statistics named in
   * {@code options.without}, such as {@code lower:3}, are left out.
   */
  static Metrics metrics(Types.StructType type, List<StructLike> rows, JsonNode options) {
    Statistics statistics = new Statistics(options.get("truncate").asInt(), names(options.get("without")));
    statistics.addStruct(type, rows);
    long records = options.hasNonNull("records") ? options.get("records").asLong() : rows.size();
    return new Metrics(
        records,
        null,
        statistics.values,
        statistics.nulls,
        statistics.nans,
        statistics.lower,
        statistics.upper);
  }

  private static Set<String> names(JsonNode json) {
    Set<String> names = new HashSet<>();
    json.forEach(name -> names.add(name.asText()));
    return names;
  }

  private static final class Statistics {
    private final int truncation;
    private final Set<String> without;
    private final Map<Integer, Long> values;
    private final Map<Integer, Long> nulls;
    private final Map<Integer, Long> nans;
    private final Map<Integer, ByteBuffer> lower;
    private final Map<Integer, ByteBuffer> upper;

    Statistics(int truncation, Set<String> without) {
      this.truncation = truncation;
      this.without = without;
      this.values = without.contains("values") ? null : new HashMap<>();
      this.nulls = without.contains("nulls") ? null : new HashMap<>();
      this.nans = without.contains("nans") ? null : new HashMap<>();
      this.lower = without.contains("lower") ? null : new HashMap<>();
      this.upper = without.contains("upper") ? null : new HashMap<>();
    }

    void addStruct(Types.StructType type, List<StructLike> rows) {
      List<Types.NestedField> fields = type.fields();
      for (int position = 0; position < fields.size(); position += 1) {
        Types.NestedField field = fields.get(position);
        int at = position;
        List<Object> column = rows.stream().map(row -> row == null ? null : row.get(at, Object.class)).toList();
        if (field.type().isStructType()) {
          addStruct(field.type().asStructType(), column.stream().map(StructLike.class::cast).toList());
        } else if (field.type().isPrimitiveType()) {
          addColumn(field, column);
        }
      }
    }

    private void addColumn(Types.NestedField field, List<Object> column) {
      int id = field.fieldId();
      put("values", values, id, (long) column.size());
      put("nulls", nulls, id, column.stream().filter(value -> value == null).count());
      if (field.type().typeId() == Type.TypeID.FLOAT || field.type().typeId() == Type.TypeID.DOUBLE) {
        put("nans", nans, id, column.stream().filter(NaNUtil::isNaN).count());
      }
      Comparator<Object> order = Comparators.forType(field.type().asPrimitiveType());
      List<Object> sorted =
          column.stream().filter(value -> value != null && !NaNUtil.isNaN(value)).sorted(order).toList();
      if (!sorted.isEmpty()) {
        put("lower", lower, id, bound(field.type(), atMost(sorted.get(0))));
        Object highest = atLeast(sorted.get(sorted.size() - 1));
        if (highest != null) {
          put("upper", upper, id, bound(field.type(), highest));
        }
      }
    }

    private <V> void put(String kind, Map<Integer, V> map, int id, V value) {
      if (map != null && !without.contains(kind + ":" + id)) {
        map.put(id, value);
      }
    }

    private Object atMost(Object value) {
      if (value instanceof CharSequence text) {
        return UnicodeUtil.truncateStringMin(text.toString(), truncation);
      }
      return value instanceof ByteBuffer bytes ? BinaryUtil.truncateBinaryMin(bytes, truncation) : value;
    }

    /** Null where no shorter value is greater. */
    private Object atLeast(Object value) {
      if (value instanceof CharSequence text) {
        return UnicodeUtil.truncateStringMax(text.toString(), truncation);
      }
      return value instanceof ByteBuffer bytes ? BinaryUtil.truncateBinaryMax(bytes, truncation) : value;
    }

    private static ByteBuffer bound(Type type, Object value) {
      return Conversions.toByteBuffer(type, value);
    }
  }
}
